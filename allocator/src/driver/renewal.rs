//! New settings while a run goes on.
//!
//! Jobs, their targets, pins and switches stay, and so do limits until the new policy or limiter
//! wants others. Only where shares come to mean something else to the kernel, caps in place of
//! weights or the other way round, what was written is put back first.

use std::sync::Arc;

use paceline_policy::limiter::{Enforcement, LimiterSettings};
use paceline_policy::{Policy, Shadow};
use tokio::sync::mpsc;
use tracing::warn;

use super::Driver;
use super::orders::restore;
use crate::audit::Entry;
use crate::live::snapshot::{PolicyView, Standing};

/// What is to be so from now on.
#[derive(Debug)]
pub struct Renewal {
    /// Who decides; `None`: who did before.
    pub policy: Option<Box<dyn Policy>>,
    /// What stands below the policy.
    pub limiter: LimiterSettings,
    /// Who watches. Those who did before go on as they are.
    pub shadows: Vec<Shadow>,
    /// The policy as it is to be shown.
    pub view: PolicyView,
    /// What has changed, for the audit log: `key: before -> after`.
    pub changes: Vec<String>,
}

impl Driver {
    /// Where new settings come from.
    #[must_use]
    pub fn renewed_by(self, renewals: mpsc::Receiver<Renewal>) -> Self {
        Self { renewals, ..self }
    }

    /// Takes new settings up.
    pub(super) fn renew(&mut self, renewal: Renewal) {
        let Renewal { policy, limiter, shadows, view, changes } = renewal;
        let before = match self.engine.limit_by(limiter) {
            Ok(before) => before,
            Err(error) => {
                warn!("the run goes on as it was: {error}");
                return;
            }
        };
        if by_weight(before) != by_weight(limiter) {
            self.put_managed_back();
        }
        if policy.is_some() || before != limiter {
            self.hurry();
        }
        if let Some(policy) = policy {
            self.engine.decided_by(policy);
        }
        self.watch_by(shadows);
        self.write(&Entry::Reloaded { changes });
        self.stage.snapshots.send_modify(|snapshot| Arc::make_mut(snapshot).policy = view);
        self.publish();
    }

    /// Puts the limits of all jobs back that the policy decides about.
    fn put_managed_back(&mut self) {
        let Some(hands) = &mut self.hands else { return };
        for (id, candidate) in self.roster.candidates() {
            if candidate.standing == Standing::Managed {
                hands.last(restore(id.to_owned(), Some(candidate.job().clone())));
            }
        }
    }

    fn watch_by(&mut self, shadows: Vec<Shadow>) {
        let mut before = std::mem::take(&mut self.shadows);
        let kept = |new: Shadow| {
            let same = before.iter().position(|one| one.policy() == new.policy());
            same.map_or(new, |at| before.swap_remove(at))
        };
        self.shadows = shadows.into_iter().map(kept).collect();
    }
}

fn by_weight(settings: LimiterSettings) -> bool {
    settings.enforcement == Enforcement::Shares
}
