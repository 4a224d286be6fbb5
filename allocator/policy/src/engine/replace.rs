//! Replacing the policy or the limiter's settings while jobs run.

use super::Engine;
use crate::limiter::{LimiterSettings, SettingError};
use crate::policy::Policy;
use crate::unit::Share;

impl Engine {
    /// Replaces the policy. The new one starts as if no share had been chosen yet. Limits in force, pins,
    /// targets and switches stay.
    pub fn set_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        self.jobs.values_mut().for_each(|job| job.chosen = Share::ALL);
    }

    /// Replaces the limiter's settings and returns the old ones. The state of the guards stays. If the
    /// enforcement changes, the caller must restore the limits that it wrote under the old one, and report
    /// them by [`Event::Applied`](super::Event::Applied). Invalid settings change nothing.
    pub fn set_limiter(
        &mut self,
        settings: LimiterSettings,
    ) -> Result<LimiterSettings, SettingError> {
        self.limiter.set(settings)
    }
}
