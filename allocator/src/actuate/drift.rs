//! Limits that are not what was written: somebody else's `docker update`, or a restart.

use paceline_policy::limiter::Setting;
use tracing::info;

use super::actuator::kept;
use super::target::Target;
use super::{Actuator, LimitError, OnDrift};

/// What is no longer as it was written to one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The container, by the engine's full id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What was written, and does not hold.
    pub written: Vec<Setting>,
    /// What is there instead.
    pub found: String,
}

impl Actuator {
    /// What has drifted of that which was written to container `id`. As long as nothing has, this
    /// reads a file or two and asks the engine nothing.
    pub async fn drifted(&self, id: &str) -> Option<Drift> {
        let account = self.ledger.get(id).filter(|account| !account.yielded)?;
        if account.holds() == Some(true) {
            return None;
        }
        let target = self.look(id).await.ok().filter(|target| target.container.pid.is_some())?;
        let host = target.container.host_config;
        let (mut written, mut found) = (Vec::new(), Vec::new());
        if let Some((share, left)) = account.cap {
            let now = target.quota();
            let lost = match now.zip(left) {
                Some((now, left)) => !now.is_near(left),
                None => account.has_foreign_cap(host),
            };
            if lost {
                written.push(Setting::Cap(share));
                found.push(
                    now.map_or(host.share(self.cpus), |now| now.share(self.cpus)).to_string(),
                );
            }
        }
        if let Some((weight, left)) = account.weight {
            let now = target.weight();
            let lost = match now.zip(left) {
                Some((now, left)) => now != left,
                None => account.has_foreign_weight(host),
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

    /// Does what the configuration says about a drift, and says which that was.
    pub async fn answer(&self, drift: &Drift) -> Result<OnDrift, LimitError> {
        match self.on_drift {
            OnDrift::Reassert => {
                for setting in &drift.written {
                    self.set(&drift.id, *setting).await?;
                }
            }
            OnDrift::Yield => {
                let target = self.look(&drift.id).await?;
                self.follow_owner(&target)?;
                self.yield_to_owner(&target).await?;
            }
        }
        Ok(self.on_drift)
    }

    /// Takes a container back that was left alone.
    pub fn manage(&self, id: &str) {
        self.ledger.bury(id);
    }

    /// Whether container `id` is left alone, since somebody else has set its limits.
    pub fn has_yielded(&self, id: &str) -> bool {
        self.ledger.get(id).is_some_and(|account| account.yielded)
    }

    /// Leaves a container alone: what is still as we wrote it goes back, what is not stays.
    pub(super) async fn yield_to_owner(&self, target: &Target) -> Result<(), LimitError> {
        let failed = |error| kept(target.name(), error);
        let account = self.ledger.get(target.id()).unwrap_or_default();
        if let Some(mut original) = self.originals.get(target.id()).map_err(failed)? {
            let (quota, weight) = (target.quota(), target.weight());
            if let (Some((_, Some(left))), Some(now)) = (account.cap, quota)
                && !now.is_near(left)
            {
                original.cgroup = quota;
            }
            if let (Some((_, Some(left))), Some(now)) = (account.weight, weight)
                && now != left
            {
                original.weight = weight;
            }
            self.originals.replace(&original).map_err(failed)?;
        }
        self.ledger.enter(target.id(), |account| account.yielded = true);
        self.restore(target.id()).await?;
        info!("container {} is left alone until it is told to be managed", target.name());
        Ok(())
    }
}
