//! The only place that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time. It is tied to wall time once, at the start, so it never goes back.
#[derive(Debug)]
pub struct Clock {
    began: Instant,
    began_since_epoch: Duration,
}

impl Clock {
    /// Starts the clock of a process.
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]
    pub fn start() -> Self {
        let began_since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), began_since_epoch }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Unix seconds.
    pub fn unix(&self) -> f64 {
        self.began_since_epoch.saturating_add(self.elapsed()).as_secs_f64()
    }
}
