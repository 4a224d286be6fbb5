//! The only place that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use paceline_policy::Moment;
use rustix::time::{ClockId, clock_gettime};

/// Monotonic time since a run began.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Starts a run's clock at 0.
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]
    pub fn start() -> Self {
        Self { began: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        Moment::since_start(self.began.elapsed())
    }

    /// The instant of a moment, for timers.
    pub fn instant(&self, moment: Moment) -> tokio::time::Instant {
        self.began
            .checked_add(moment.elapsed())
            .map_or_else(|| tokio::time::Instant::now() + FAR, tokio::time::Instant::from_std)
    }
}

/// Longer than any wait: the timer for a moment beyond what an instant can hold.
const FAR: Duration = Duration::from_hours(24 * 365);

/// The CPU time that this thread has taken, in seconds.
pub fn thread_cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::try_from(used).unwrap_or_default();
    seconds.as_secs_f64()
}

/// Wall time in Unix seconds, for stamps.
#[expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
