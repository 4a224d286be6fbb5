use std::time::Duration;

use tokio::time::Instant;

/// How often in a row a job may wake the allocator at once: for its start, for a target, for a
/// checkpoint. Further news waits for the next sample.
const BURST: u32 = 4;
/// After this long, a job may wake the allocator once more.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// Limits how often one job may wake the allocator: a malicious job must not keep it busy.
#[derive(Debug, Default)]
pub(super) struct WakeLimiter {
    /// When all used wake-ups are available again.
    regained: Option<Instant>,
}

impl WakeLimiter {
    /// Takes one wake-up, if one is available; returns whether it did.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let regained = self.regained.map_or(now, |regained| regained.max(now));
        let is_left = regained.duration_since(now) <= WAKE_INTERVAL * (BURST - 1);
        if is_left {
            self.regained = Some(regained + WAKE_INTERVAL);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_allowed_and_then_one_wake_per_interval() {
        let (mut limiter, began) = (WakeLimiter::default(), Instant::now());
        let at_once = (0..100).filter(|_| limiter.take(began)).count();
        assert_eq!(at_once, 4);
        assert!(!limiter.take(began + WAKE_INTERVAL / 2));
        assert!(limiter.take(began + WAKE_INTERVAL) && !limiter.take(began + WAKE_INTERVAL));
        let later = (0..100).filter(|_| limiter.take(began + WAKE_INTERVAL * 60)).count();
        assert_eq!(later, 4, "no more than a burst is saved up");
    }
}
