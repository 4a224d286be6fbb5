//! New settings during a run.
//!
//! Jobs, targets, pins and guards stay, and limits stay until the new policy or limiter changes
//! them. Only a change between caps and weights restores the limits first.

use std::sync::Arc;

use paceline_api::audit::Entry;
use paceline_api::live::snapshot::{PolicyView, Standing};
use paceline_policy::Policy;
use paceline_policy::limiter::{Enforcement, LimiterSettings};
use tokio::sync::mpsc;
use tracing::warn;

use super::commands::restore;
use super::{Controller, Shadow};

/// New settings.
#[derive(Debug)]
pub struct NewSettings {
    /// The new policy; `None` keeps the old one.
    pub policy: Option<Box<dyn Policy>>,
    /// The limiter's settings.
    pub limiter: LimiterSettings,
    /// The shadow policies. Those that stay keep their state.
    pub shadows: Vec<Shadow>,
    /// The policy as it is shown.
    pub view: PolicyView,
    /// The changes for the audit log, each `key: before -> after`.
    pub changes: Vec<String>,
}

impl Controller {
    /// Sets the channel from which new settings come.
    #[must_use]
    pub fn with_reloads(self, renewals: mpsc::Receiver<NewSettings>) -> Self {
        Self { renewals, ..self }
    }

    /// Applies new settings.
    pub(super) fn renew(&mut self, renewal: NewSettings) {
        let NewSettings { policy, limiter, shadows, view, changes } = renewal;
        let before = match self.engine.set_limiter(limiter) {
            Ok(before) => before,
            Err(error) => {
                warn!("the new settings are ignored: {error}");
                return;
            }
        };
        if by_weight(before) != by_weight(limiter) {
            self.restore_managed();
        }
        if policy.is_some() || before != limiter {
            self.decide_soon();
        }
        if let Some(policy) = policy {
            self.engine.set_policy(policy);
        }
        self.recorder.watch_by(shadows);
        self.recorder.write(&Entry::Reloaded { changes });
        self.channels.snapshots.send_modify(|snapshot| Arc::make_mut(snapshot).policy = view);
        self.publish();
    }

    /// Restores the limits of all jobs that the policy decides about.
    fn restore_managed(&mut self) {
        let Some(writes) = &mut self.writes else { return };
        for (id, candidate) in self.inventory.candidates() {
            if candidate.standing == Standing::Managed {
                writes.push_back(restore(id.to_owned(), Some(candidate.job().clone())));
            }
        }
    }
}

fn by_weight(settings: LimiterSettings) -> bool {
    settings.enforcement == Enforcement::Shares
}
