use std::time::Duration;

use tokio::time::Instant;

/// A job can wake the allocator at once so often in a row: it starts, it reaches what is acceptable,
/// it has saved. What comes beyond that waits for the next look.
const BURST: u32 = 4;
/// So long after it has woken the allocator a job may do so once more.
const PAUSE: Duration = Duration::from_secs(1);

/// How often one job may wake the allocator: a job that lies must not keep it at work.
#[derive(Debug, Default)]
pub(super) struct Nudges {
    /// When all that were used are regained.
    regained: Option<Instant>,
}

impl Nudges {
    /// Uses one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let regained = self.regained.map_or(now, |regained| regained.max(now));
        let is_left = regained.duration_since(now) <= PAUSE * (BURST - 1);
        if is_left {
            self.regained = Some(regained + PAUSE);
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_come_at_once_and_then_one_for_each_pause() {
        let (mut nudges, began) = (Nudges::default(), Instant::now());
        let at_once = (0..100).filter(|_| nudges.take(began)).count();
        assert_eq!(at_once, 4);
        assert!(!nudges.take(began + PAUSE / 2));
        assert!(nudges.take(began + PAUSE) && !nudges.take(began + PAUSE));
        let later = (0..100).filter(|_| nudges.take(began + PAUSE * 60)).count();
        assert_eq!(later, 4, "no more are laid by");
    }
}
