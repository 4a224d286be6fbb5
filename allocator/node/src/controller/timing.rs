//! The intervals of a controller that is not woken.

use std::time::Duration;

/// The intervals of a controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How often jobs are sampled. Policies run less often, by their own interval.
    pub(super) sample: Duration,
    /// How often all containers are described again, because an event can be lost.
    pub(super) reconcile: Duration,
    /// How long the policy waits for the answers of endpoints, which are asked before it runs.
    pub(super) answers: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            sample: Duration::from_secs(1),
            reconcile: Duration::from_secs(10),
            answers: Duration::from_millis(800),
        }
    }
}
