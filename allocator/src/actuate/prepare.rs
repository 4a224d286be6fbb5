//! What comes before a write: a look at the container, whose word its limits are, and its original
//! limits kept.

use std::sync::Arc;

use tracing::{info, warn};

use super::actuator::{PATIENCE, kept, silent};
use super::ledger::Account;
use super::originals::OriginalsError;
use super::target::Target;
use super::{Actuator, LimitError, Means, OnDrift};
use crate::crash;
use crate::observe::cgroup::Cgroup;
use crate::observe::cgroup::block_io::IoWeight;
use crate::observe::container::{self, Container};

impl Actuator {
    /// The engine has just described this container. A limit that is written past the engine needs
    /// not wait for it to do so again, as long as it says the same and the kernel shows no change.
    pub fn saw(&self, container: &Container) {
        let account = self.ledger.get(&container.id).unwrap_or_default();
        if self.means != Means::Cgroup || account.yielded || account.has_seen(container) {
            return;
        }
        if account.is_written() {
            // Whose word that is takes a closer look, before the next write.
            self.ledger.enter(&container.id, Account::forget_seen);
        } else {
            let target = Arc::new(self.target(container.clone()));
            self.ledger.enter(&container.id, |account| account.see(target));
        }
    }

    /// On return, what container `id` had before the first write to it is kept: on the disk, or
    /// where the engine is passed by, for whoever comes after this process. A limit that the engine
    /// knows nothing of does not outlive the machine, so it needs not wait for the disk.
    pub(super) async fn prepare(&self, id: &str) -> Result<Arc<Target>, LimitError> {
        let account = self.ledger.get(id).unwrap_or_default();
        if account.yielded {
            return Err(LimitError::Yielded(id.to_owned()));
        }
        let seen = account.as_seen().filter(|_| self.means == Means::Cgroup);
        let target = match seen {
            Some(target) => target,
            None => self.look_closely(id).await?,
        };
        if self.follow_owner(&target)? && self.on_drift == OnDrift::Yield {
            self.yield_to_owner(&target).await?;
            return Err(LimitError::Yielded(target.name()));
        }
        crash::point("before-snapshot");
        self.keep(&target).map_err(|error| kept(target.name(), error))?;
        self.ledger.enter(target.id(), |account| account.look(&target));
        Ok(target)
    }

    fn keep(&self, target: &Target) -> Result<(), OriginalsError> {
        let original = target.original();
        if self.means == Means::Engine {
            return self.originals.keep(&original);
        }
        if self.originals.keep_unsynced(&original)? {
            let (sync, name) = (self.originals.sync(&original.id), original.name);
            // A disk that is busy takes its time: a thread waits for it, and nobody for the thread.
            drop(tokio::task::spawn_blocking(move || {
                if let Err(error) = sync() {
                    warn!("the original limits of container {name} are not synced: {error}");
                }
            }));
        }
        Ok(())
    }

    /// What somebody else has set since our last write is that container's new original: it is what
    /// is to be put back. Returns whether there is such a thing.
    pub(super) fn follow_owner(&self, target: &Target) -> Result<bool, LimitError> {
        let now = target.container.host_config;
        let Some(account) = self.ledger.get(target.id()) else { return Ok(false) };
        let (cap, weight) = (account.has_foreign_cap(now), account.has_foreign_weight(now));
        let failed = |error| kept(target.name(), error);
        let Some(mut original) = self.originals.get(target.id()).map_err(failed)? else {
            return Ok(false);
        };
        if cap {
            let cpu_shares = original.host_config.cpu_shares;
            original.host_config = container::HostCpu { cpu_shares, ..now };
            original.cgroup = target.quota();
        }
        if weight {
            original.host_config.cpu_shares = now.cpu_shares;
            original.weight = target.weight();
        }
        if cap || weight {
            info!("somebody else has set limits of container {}: they are kept", target.name());
            self.originals.replace(&original).map_err(failed)?;
        }
        Ok(cap || weight)
    }

    /// A container as it is now, which is also how it is known from now on.
    async fn look_closely(&self, id: &str) -> Result<Arc<Target>, LimitError> {
        let target = Arc::new(self.look(id).await?);
        if self.means == Means::Cgroup {
            self.ledger.enter(id, |account| account.see(Arc::clone(&target)));
        }
        Ok(target)
    }

    /// A container as it is now.
    pub(super) async fn look(&self, id: &str) -> Result<Target, LimitError> {
        let asked = tokio::time::timeout(PATIENCE, container::inspect(&self.docker, id));
        let container = match asked.await {
            Ok(Ok(Some(container))) => container,
            Ok(Ok(None)) => return Err(LimitError::Gone(id.to_owned())),
            Ok(Err(error)) => return Err(LimitError::Engine(id.to_owned(), error)),
            Err(_) => return Err(silent(id.to_owned())),
        };
        Ok(self.target(container))
    }

    /// What the kernel has of a container that the engine has described.
    fn target(&self, container: Container) -> Target {
        let cgroup = container.pid.and_then(|pid| Cgroup::of(&self.proc, pid).ok());
        let seen = container.pid.zip(cgroup.as_ref());
        let io = seen.and_then(|(pid, group)| IoWeight::of(&self.proc, pid, group.cpu_folder()));
        Target { container, cgroup, io }
    }
}
