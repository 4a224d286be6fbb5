//! Another policy or another limiter, while jobs run.

use super::Engine;
use crate::limiter::{LimiterSettings, SettingError};
use crate::policy::Policy;
use crate::unit::Share;

impl Engine {
    /// Lets another policy decide from now on: it sees the jobs as they are, with no choice of
    /// anybody's before it, as at a start. What is in force, pinned, set and switched stays.
    pub fn decided_by(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        self.jobs.values_mut().for_each(|job| job.chosen = Share::ALL);
    }

    /// Limits by other settings from now on. What guards remember of jobs stays. Where shares come
    /// to mean something else to the kernel, what was written in the old sense is to be put back by
    /// whoever writes, and told of by [`Event::Applied`](super::Event::Applied). Returns the settings before; settings that
    /// cannot be used leave everything as it is.
    pub fn limit_by(&mut self, settings: LimiterSettings) -> Result<LimiterSettings, SettingError> {
        self.limiter.set(settings)
    }
}
