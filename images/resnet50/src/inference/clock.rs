//! The time since the start.

use std::thread;
use std::time::{Duration, Instant};

/// The longest time before a request to stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A started clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since its start.
    pub(super) fn now(self) -> Duration {
        self.0.elapsed()
    }

    /// Waits until a time, but no longer than `LONGEST_WAIT`.
    pub(super) fn wait_until(self, time: Duration) {
        thread::park_timeout(time.saturating_sub(self.now()).min(LONGEST_WAIT));
    }
}
