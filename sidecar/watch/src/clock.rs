//! The clocks of this crate.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The moment, by a clock that never goes back.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time in Unix seconds.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub(crate) fn unix() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
