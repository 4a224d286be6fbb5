//! The only place that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

/// Monotonic time since a reporter started, tied to wall time once.
///
/// Stamps on the wire are the start's wall time plus monotonic time, so that they keep their order
/// and distance when the machine's clock is set during a run.
#[derive(Debug)]
pub(crate) struct Clock {
    began: Moment,
    began_since_epoch: Duration,
}

impl Clock {
    /// Starts the time of one reporter.
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]
    pub(crate) fn start() -> Self {
        let began_since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Self::now(), began_since_epoch }
    }

    /// This moment, as a plain count. The checked arithmetic of `Instant` would cost a third of a
    /// report's time without its two readings of the clock.
    #[cfg(unix)]
    #[inline]
    pub(crate) fn now() -> Moment {
        let now = clock_gettime(ClockId::Monotonic);
        // The time since boot is not negative, and 64 bits hold 584 years.
        let unsigned = |part: i64| u64::from_ne_bytes(part.to_ne_bytes());
        let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(unsigned);
        Moment(seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos))
    }

    /// This moment, counted from the first one.
    #[cfg(not(unix))]
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]
    pub(crate) fn now() -> Moment {
        static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        Moment(nanos(FIRST.get_or_init(std::time::Instant::now).elapsed()))
    }

    /// Monotonic time from the start to `moment`.
    pub(crate) fn since_start(&self, moment: Moment) -> Duration {
        moment.since(self.began)
    }

    /// The moment so long after the start.
    #[cfg(test)]
    pub(crate) fn moment(&self, since_start: Duration) -> Moment {
        Moment(self.began.0 + nanos(since_start))
    }

    /// Monotonic time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since_start(Self::now())
    }

    /// Wall time of the start, since 1970.
    pub(crate) fn began_since_epoch(&self) -> Duration {
        self.began_since_epoch
    }

    /// A moment after the start, in Unix seconds.
    pub(crate) fn unix(&self, elapsed: Duration) -> f64 {
        self.began_since_epoch.saturating_add(elapsed).as_secs_f64()
    }
}

/// A moment of the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(u64);

impl Moment {
    /// The time since an earlier moment.
    #[inline]
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration as whole nanoseconds; 64 bits hold 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
