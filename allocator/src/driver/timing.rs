//! When a driver does what nothing wakes it for.

use std::time::Duration;

/// Its intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How often jobs are looked at. Policies run less often, by their own interval.
    pub(super) look: Duration,
    /// How often all containers are compared, events or not: an event can be lost.
    pub(super) reconcile: Duration,
    /// Before the policy runs by itself, every endpoint is asked. So long is waited for those that
    /// take their time.
    pub(super) answers: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(1),
            reconcile: Duration::from_secs(10),
            answers: Duration::from_millis(800),
        }
    }
}
