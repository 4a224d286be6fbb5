//! The time since the start.

use std::thread;
use std::time::{Duration, Instant};

/// So long may a request to stop go unnoticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A clock that was started.
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

    /// Waits until a time, or for a little while if that is far away.
    pub(super) fn wait_until(self, time: Duration) {
        thread::park_timeout(time.saturating_sub(self.now()).min(LONGEST_WAIT));
    }
}
