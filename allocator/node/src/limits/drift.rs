//! Drift: limits that differ from what was written, by a user's `docker update` or by a restart.

use paceline_policy::limiter::Setting;
use tracing::info;

use super::follow::follow;
use super::limit_write::Purpose;
use super::target::Target;
use super::{Actuator, LimitError, OnDrift};

/// The limits of one container that differ from what was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The container's full id in the engine.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The settings that were written and are not in force.
    pub written: Vec<Setting>,
    /// What is in force instead, as text.
    pub found: String,
}

impl Actuator {
    /// The drift of container `id`, if there is any. Without drift, this only reads one or two files
    /// and does not ask the engine. A container that was not written to has none.
    pub async fn drifted(&self, id: &str) -> Option<Drift> {
        let state = self.written.get(id).filter(|state| state.is_written() && !state.yielded)?;
        if state.holds() == Some(true) {
            return None;
        }
        let target = self.inspect(id).await.ok().filter(|target| target.container.pid.is_some())?;
        let host = target.container.host_config;
        let record = self.originals.get(id).ok().flatten();
        let followed = record.and_then(|record| follow(&record, &target.observe()));
        let (mut written, mut found) = (Vec::new(), Vec::new());
        if let Some((share, left)) = state.cap {
            let now = target.quota();
            let lost = match now.zip(left) {
                Some((now, left)) => !now.is_near(left),
                None => followed.as_ref().is_some_and(|followed| followed.cap),
            };
            if lost {
                written.push(Setting::Cap(share));
                found.push(
                    now.map_or(host.share(self.cpus), |now| now.share(self.cpus)).to_string(),
                );
            }
        }
        if let Some((weight, left)) = state.weight {
            let now = target.weight();
            let lost = match now.zip(left) {
                Some((now, left)) => now != left,
                None => followed.as_ref().is_some_and(|followed| followed.weight),
            };
            if lost {
                written.push(Setting::Weight(weight));
                let shares = u64::try_from(host.cpu_shares).unwrap_or_default();
                found.push(format!("weight {}", now.unwrap_or(shares)));
            }
        }
        let (id, name) = (id.to_owned(), target.name());
        (!written.is_empty()).then(|| Drift { id, name, written, found: found.join(", ") })
    }

    /// Answers a drift as configured; returns the configured answer.
    pub async fn answer(&self, drift: &Drift) -> Result<OnDrift, LimitError> {
        match self.on_drift {
            OnDrift::Reassert => {
                for setting in &drift.written {
                    self.set(&drift.id, *setting).await?;
                }
            }
            OnDrift::Yield => {
                let target = self.inspect(&drift.id).await?;
                self.follow_owner(&target, Purpose::Limit { io: None }).await?;
                self.yield_to_owner(&target).await?;
            }
        }
        Ok(self.on_drift)
    }

    /// Manages a container again that was yielded to its owner.
    pub fn manage(&self, id: &str) {
        self.written.remove(id);
    }

    /// Yields a container to its owner, after the owner's changes were followed: these stay, and limits
    /// that are still as we wrote them are restored.
    pub(super) async fn yield_to_owner(&self, target: &Target) -> Result<(), LimitError> {
        self.written.update(target.id(), |state| state.yielded = true);
        self.restore(target.id()).await?;
        info!(
            "container {} is not managed any more, until `paceline manage` names it",
            target.name()
        );
        Ok(())
    }
}
