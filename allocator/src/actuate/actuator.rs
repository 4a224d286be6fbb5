use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bollard::Docker;
use bollard::models::{ContainerUpdateBody, RestartPolicy, RestartPolicyNameEnum};
use bollard::query_parameters::StopContainerOptionsBuilder;
use paceline_policy::limiter::Setting;

use super::error::{LimitError, chain};
use super::ledger::Ledger;
use super::means::{Means, OnDrift};
use super::originals::{Original, Originals, OriginalsError};
use super::target::{Target, Unseen};
use super::way::Way;
use super::ways;
use crate::crash;
use crate::observe::cgroup::Cgroup;

/// How long the engine may take for one answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// How often a value is written that does not show in the kernel.
const TRIES: usize = 2;

/// Writes limits to the containers of one engine, and puts them back.
///
/// One container is written to by one call at a time.
#[derive(Debug)]
pub struct Actuator {
    pub(super) docker: Docker,
    pub(super) originals: Originals,
    pub(super) proc: PathBuf,
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
    pub fn originally(&self, id: &str) -> Result<Option<Original>, OriginalsError> {
        self.originals.get(id)
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

pub(super) fn silent(name: String) -> LimitError {
    LimitError::Silent { name, seconds: PATIENCE.as_secs() }
}
