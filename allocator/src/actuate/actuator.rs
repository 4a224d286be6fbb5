use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bollard::Docker;
use bollard::models::{ContainerUpdateBody, RestartPolicy, RestartPolicyNameEnum};
use bollard::query_parameters::StopContainerOptionsBuilder;
use paceline_policy::limiter::Setting;
use tracing::info;

use super::error::{LimitError, chain};
use super::ledger::Ledger;
use super::means::{Means, OnDrift};
use super::originals::{Original, Originals, OriginalsError};
use super::target::{Target, Unseen};
use super::way::Way;
use super::ways;
use crate::crash;
use crate::observe::cgroup::Cgroup;
use crate::observe::cgroup::block_io::IoWeight;
use crate::observe::container;

/// How long the engine may take for one answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a value is written that does not show in the kernel.
const TRIES: usize = 2;

/// Writes limits to the containers of one engine, and puts them back.
///
/// One container is written to by one call at a time.
#[derive(Debug)]
pub struct Actuator {
    docker: Docker,
    pub(super) originals: Originals,
    proc: PathBuf,
    pub(super) cpus: f64,
    pub(super) means: Means,
    pub(super) on_drift: OnDrift,
    pub(super) ledger: Ledger,
    /// That is worth saying once.
    pub(super) said_no_io_weight: AtomicBool,
}

impl Actuator {
    /// An actuator for a node with `cpus` CPUs, whose `/proc` is at `proc`.
    pub fn new(docker: Docker, originals: Originals, proc: PathBuf, cpus: f64) -> Self {
        let (means, on_drift, ledger, said_no_io_weight) = Default::default();
        Self { docker, originals, proc, cpus, means, on_drift, ledger, said_no_io_weight }
    }

    /// The same, writing by `means` and answering drift by `on_drift`.
    #[must_use]
    pub fn by(self, means: Means, on_drift: OnDrift) -> Self {
        Self { means, on_drift, ..self }
    }

    /// Writes one setting for container `id`. Returns what is in force then, as read back.
    pub async fn set(&self, id: &str, setting: Setting) -> Result<Setting, LimitError> {
        let target = self.prepare(id).await?;
        crash::point("after-snapshot");
        self.write_setting(&target, setting).await
    }

    /// Ends container `id` for good: it is not started again, is asked to end, and has `patience`
    /// seconds to do so (T13).
    pub async fn end(&self, id: &str, patience: i32) -> Result<(), LimitError> {
        let failed = |error| LimitError::engine(id.to_owned(), error);
        let never =
            RestartPolicy { name: Some(RestartPolicyNameEnum::NO), ..RestartPolicy::default() };
        let body = ContainerUpdateBody { restart_policy: Some(never), ..Default::default() };
        self.docker.update_container(id, body).await.map_err(failed)?;
        let options = StopContainerOptionsBuilder::default().t(patience).build();
        self.docker.stop_container(id, Some(options)).await.map_err(failed)
    }

    /// The ids of all containers that have something to be put back.
    pub fn pending(&self) -> Result<Vec<String>, OriginalsError> {
        self.originals.ids()
    }

    /// What container `id` had before the first write to it; `None` where there was none.
    pub fn originally(&self, id: &str) -> Option<Original> {
        self.originals.get(id).ok().flatten()
    }

    /// On return, what container `id` had before the first write to it is on the disk.
    pub(super) async fn prepare(&self, id: &str) -> Result<Target, LimitError> {
        if self.ledger.get(id).is_some_and(|account| account.yielded) {
            return Err(LimitError::Yielded(id.to_owned()));
        }
        let target = self.look(id).await?;
        if self.follow_owner(&target)? && self.on_drift == OnDrift::Yield {
            self.yield_to_owner(&target).await?;
            return Err(LimitError::Yielded(target.name()));
        }
        crash::point("before-snapshot");
        self.originals.keep(&target.original()).map_err(|error| kept(target.name(), error))?;
        self.ledger.enter(target.id(), |account| account.look(&target));
        Ok(target)
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

    async fn write_setting(
        &self,
        target: &Target,
        setting: Setting,
    ) -> Result<Setting, LimitError> {
        let host = target.container.host_config;
        let ways = match (setting, self.means) {
            (Setting::Cap(share), Means::Engine) => ways::to_limit(host, share, self.cpus),
            (Setting::Cap(share), Means::Cgroup) => {
                let now = target.quota().ok_or_else(|| unseen(target))?;
                vec![ways::to_write(now, share, self.cpus)]
            }
            (Setting::Weight(weight), Means::Engine) => {
                vec![ways::to_weigh(i64::try_from(weight).unwrap_or(i64::MAX))]
            }
            (Setting::Weight(weight), Means::Cgroup) => {
                let cgroup = target.cgroup.as_ref().ok_or_else(|| unseen(target))?;
                vec![Way::WeightFile(cgroup.weight_of(weight))]
            }
        };
        self.first_accepted(target, &ways).await?;
        crash::point("before-audit");
        match setting {
            Setting::Cap(share) => {
                let quota = target.quota();
                self.ledger.enter(target.id(), |account| account.cap = Some((share, quota)));
                Ok(Setting::Cap(quota.map_or(share, |quota| quota.share(self.cpus))))
            }
            Setting::Weight(weight) => {
                let left = Some((weight, target.weight()));
                self.ledger.enter(target.id(), |account| account.weight = left);
                self.weigh_block_io(target, weight);
                Ok(setting)
            }
        }
    }

    pub(super) async fn first_accepted(
        &self,
        target: &Target,
        ways: &[Way],
    ) -> Result<(), LimitError> {
        let mut refused = Vec::new();
        for way in ways {
            match self.write_and_see(target, *way).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => refused.push(format!("{way}: {}", chain(&error))),
            }
        }
        Err(LimitError::Refused { name: target.name(), refused: refused.join("; ") })
    }

    /// Writes, and reads back. What the kernel has counts: an engine that fails may have changed it
    /// all the same, and one that is content may have changed nothing.
    async fn write_and_see(&self, target: &Target, way: Way) -> Result<(), LimitError> {
        let mut tries = 1;
        loop {
            let written = self.write(target, way).await;
            crash::point("between-writes");
            match (target.other_than(way), written) {
                (_, Err(error)) if error.is_final() => return Err(error),
                (Ok(None), _) | (Err(Unseen), Ok(())) => return Ok(()),
                (_, Err(error)) => return Err(error),
                (Ok(Some(_)), Ok(())) if tries < TRIES => tries += 1,
                (Ok(Some(found)), Ok(())) => {
                    let (name, wanted) = (target.name(), way.to_string());
                    return Err(LimitError::Unverified { name, wanted, found });
                }
            }
        }
    }

    async fn write(&self, target: &Target, way: Way) -> Result<(), LimitError> {
        let Some(request) = way.request() else {
            let cgroup = target.cgroup.as_ref().ok_or_else(|| unseen(target))?;
            return write_file(cgroup, way).map_err(|error| LimitError::Refused {
                name: target.name(),
                refused: error.to_string(),
            });
        };
        let after = way.after(target.container.host_config);
        self.ledger.enter(target.id(), |account| account.ask(after));
        let answer = self.docker.update_container(target.id(), request);
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(answer) => answer.map_err(|error| LimitError::engine(target.name(), error)),
            Err(_) => Err(silent(target.name())),
        }
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
        let cgroup = container.pid.and_then(|pid| Cgroup::of(&self.proc, pid).ok());
        let seen = container.pid.zip(cgroup.as_ref());
        let io = seen.and_then(|(pid, group)| IoWeight::of(&self.proc, pid, group.cpu_folder()));
        Ok(Target { container, cgroup, io })
    }
}

pub(super) fn write_file(cgroup: &Cgroup, way: Way) -> std::io::Result<()> {
    match way {
        Way::File(quota) => cgroup.set_quota(quota),
        Way::WeightFile(weight) => cgroup.set_weight(weight),
        Way::MemoryFile(limit) => cgroup.set_memory_limit(limit),
        Way::NanoCpus(_) | Way::CpuQuota(_) | Way::CpuShares(_) | Way::Memory(_) => Ok(()),
    }
}

pub(super) fn kept(name: String, error: OriginalsError) -> LimitError {
    LimitError::Originals(name, error)
}

pub(super) fn unseen(target: &Target) -> LimitError {
    LimitError::Refused { name: target.name(), refused: "its cgroup cannot be seen".to_owned() }
}

fn silent(name: String) -> LimitError {
    LimitError::Silent { name, seconds: PATIENCE.as_secs() }
}
