use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline_cgroup::{Cgroup, Quota};
use paceline_policy::limiter::Setting;
use paceline_runtime::{Change, Runtime, short};
use tracing::info;

use super::backend::{ActuatorBackend, OnDrift};
use super::block_io::set_block_io_weight;
use super::error::{LimitError, chain};
use super::leftovers::Leftover;
use super::limit_write::{LimitWrite, Purpose};
use super::means::Means;
use super::originals::{Original, Originals, OriginalsError};
use super::plan_writes;
use super::record::LastWrite;
use super::silence::Silence;
use super::target::{Target, Unseen};
use super::written_state::{WrittenState, WrittenStates};
use crate::crash;

/// How long the container engine may take for one answer.
pub(super) const ENGINE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a value is written before a different value in the kernel is an error.
const MAX_TRIES: usize = 2;

/// Writes limits to the containers of one container engine, and restores them.
///
/// The caller must not write to one container by two calls at the same time.
#[derive(Debug)]
pub struct Actuator {
    pub(super) runtime: Runtime,
    pub(super) originals: Arc<Originals>,
    pub(super) proc: PathBuf,
    pub(super) cpus: f64,
    pub(super) backend: ActuatorBackend,
    pub(super) on_drift: OnDrift,
    pub(super) written: WrittenStates,
    /// Records of other engines that concern no container of this one.
    pub(super) leftovers: Mutex<Vec<Leftover>>,
    /// Whether the lack of weights for block I/O was logged.
    pub(super) logged_no_io_weight: AtomicBool,
    /// Whether it was logged that limits are written into files …
    pub(super) logged_files: AtomicBool,
    /// … or by the engine, although the choice is automatic.
    pub(super) logged_engine: AtomicBool,
    /// Whether the engine leaves requests unanswered.
    pub(super) silence: Silence,
}

impl Actuator {
    /// An actuator for a node with `cpus` CPUs, whose `/proc` is at `proc`.
    pub fn new(runtime: Runtime, originals: Originals, proc: PathBuf, cpus: f64) -> Self {
        Self {
            runtime,
            originals: Arc::new(originals),
            proc,
            cpus,
            backend: ActuatorBackend::default(),
            on_drift: OnDrift::default(),
            written: WrittenStates::default(),
            leftovers: Mutex::default(),
            logged_no_io_weight: AtomicBool::default(),
            logged_files: AtomicBool::default(),
            logged_engine: AtomicBool::default(),
            silence: Silence::default(),
        }
    }

    /// The same, writing through `backend` and answering outside changes as `on_drift` says.
    #[must_use]
    pub fn with_backend(self, backend: ActuatorBackend, on_drift: OnDrift) -> Self {
        let backend = match backend {
            ActuatorBackend::Auto if self.runtime.is_of_kubernetes() => {
                info!("limits are written by the container runtime: the kubelet keeps those");
                ActuatorBackend::Engine
            }
            ActuatorBackend::Auto | ActuatorBackend::Cgroup | ActuatorBackend::Engine => backend,
        };
        Self { backend, on_drift, ..self }
    }

    /// Writes one setting for container `id`. Returns the setting in force afterwards, as read back.
    pub async fn set(&self, id: &str, setting: Setting) -> Result<Setting, LimitError> {
        let (target, means) = self.prepare(id).await?;
        ensure_runs(&target)?;
        match self.write_setting(&target, setting, means).await {
            Err(error) if means == Means::Files && !error.is_final() => {
                let Some(means) = self.after_files(&target, &chain(&error)) else {
                    return Err(error);
                };
                // What the engine keeps counts from here on, so that a description of before is too old.
                self.written.update(id, WrittenState::forget_seen);
                let (target, _) = self.prepare(id).await?;
                ensure_runs(&target)?;
                self.write_setting(&target, setting, means).await
            }
            done => done,
        }
    }

    /// Ends container `id` for good: it is asked to end, is killed after `grace` seconds, and is not
    /// restarted.
    ///
    /// An engine restarts no container that it was asked to end, until it starts itself again. So the
    /// restart policy is changed last: a container that could not be ended has the one of its owner.
    pub async fn end(&self, id: &str, grace: i32) -> Result<(), LimitError> {
        let failed = |error| LimitError::engine(id.to_owned(), error);
        self.runtime.stop(id, grace).await.map_err(failed)?;
        // It has ended all the same. The engine may be about to remove it, and then changes nothing of it.
        if let Err(error) = self.runtime.update(id, Change::StaysEnded).await {
            tracing::debug!("cannot change the restart policy of container {id}: {error}");
        }
        Ok(())
    }

    /// The ids of all containers with a record, which are to be restored.
    pub fn pending(&self) -> Vec<String> {
        self.originals.ids()
    }

    /// A container's name, or the short form of its id.
    pub fn name_of(&self, id: &str) -> String {
        let record = self.originals.get(id).ok().flatten();
        record.map_or_else(|| short(id).to_owned(), |record| record.original.name)
    }

    /// The limits of container `id` that its owner wants; `None` if nothing was written.
    pub fn originally(&self, id: &str) -> Result<Option<Original>, OriginalsError> {
        Ok(self.originals.get(id)?.map(|record| record.original))
    }

    /// Writes the files of the state folder again that were removed or changed by others.
    pub fn mend_files(&self) {
        self.originals.mend();
    }

    async fn write_setting(
        &self,
        target: &Target,
        setting: Setting,
        means: Means,
    ) -> Result<Setting, LimitError> {
        let host = target.container.host_config;
        let whole = match setting {
            Setting::Cap(share) if share.is_all() => self.pods_quota(target),
            Setting::Cap(_) | Setting::Weight(_) => None,
        };
        let writes = match (setting, means) {
            (Setting::Cap(_), Means::Engine) if whole.is_some() => {
                whole.map(LimitWrite::CpuQuota).into_iter().collect()
            }
            (Setting::Cap(_), Means::Files) if whole.is_some() => {
                let now = target.quota().ok_or_else(|| unseen(target))?;
                let quota = whole.and_then(|quota| u64::try_from(quota).ok());
                vec![LimitWrite::File(Quota { quota, ..now })]
            }
            (Setting::Cap(share), Means::Engine) => plan_writes::to_limit(host, share, self.cpus),
            (Setting::Cap(share), Means::Files) => {
                let now = target.quota().ok_or_else(|| unseen(target))?;
                vec![plan_writes::to_write(now, share, self.cpus)]
            }
            (Setting::Weight(weight), Means::Engine) => {
                vec![plan_writes::to_weigh(i64::try_from(weight).unwrap_or(i64::MAX))]
            }
            (Setting::Weight(weight), Means::Files) => {
                let cgroup = target.cgroup.as_ref().ok_or_else(|| unseen(target))?;
                vec![LimitWrite::WeightFile(cgroup.weight_of(weight))]
            }
        };
        let io = match setting {
            Setting::Weight(weight) => self.block_io_weight(target, weight),
            Setting::Cap(_) => None,
        };
        self.first_accepted(target, &writes, Purpose::Limit { io }).await?;
        crash::point("before-audit");
        match setting {
            Setting::Cap(share) => {
                let quota = target.quota();
                self.written.update(target.id(), |state| state.cap = Some((share, quota)));
                Ok(Setting::Cap(quota.map_or(share, |quota| quota.share(self.cpus))))
            }
            Setting::Weight(weight) => {
                let left = Some((weight, target.weight()));
                self.written.update(target.id(), |state| state.weight = left);
                if let Some(io) = io {
                    set_block_io_weight(target, io);
                }
                Ok(setting)
            }
        }
    }

    /// The quota of a pod's container by its owner. It may be as large as the machine or larger, and in
    /// the place of it the kernel must not have none.
    fn pods_quota(&self, target: &Target) -> Option<i64> {
        target.container.pod.as_ref()?;
        let record = self.originals.get(target.id()).ok().flatten();
        let owned = record.map_or(target.container.host_config, |it| it.original.host_config);
        Some(owned.cpu_quota).filter(|quota| *quota > 0)
    }

    /// Makes the first write that is accepted. All values that may be left are recorded before, and
    /// those that are left afterwards.
    pub(super) async fn first_accepted(
        &self,
        target: &Target,
        writes: &[LimitWrite],
        purpose: Purpose,
    ) -> Result<(), LimitError> {
        let before = target.observe();
        let record = self.originals.get(target.id()).map_err(|error| kept(target.name(), error))?;
        let mut last = LastWrite::before(&before, record.and_then(|record| record.last).as_ref());
        if let Purpose::Limit { io: Some(io) } = purpose {
            last.add_io_weight(io);
        }
        let mut refused = Vec::new();
        for write in writes {
            let earlier = last.clone();
            last.add(*write, &before);
            if write.change().is_some() {
                // Before the request: it may take effect even if this call ends in the middle of it.
                self.written.update(target.id(), WrittenState::forget_seen);
            }
            self.write_ahead(target, &before, last.clone(), (*write, purpose)).await?;
            match self.write_and_see(target, *write).await {
                Ok(answered) => {
                    if answered {
                        last.settle(*write, &before, &target.observe());
                        self.originals.settle(target.id(), last);
                    }
                    return Ok(());
                }
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    let now = target.observe();
                    let is_unchanged = (now.quota, now.weight) == (before.quota, before.weight);
                    if matches!(error, LimitError::Engine(..)) && is_unchanged {
                        last.withdraw(&earlier);
                    }
                    refused.push(format!("{write}: {}", chain(&error)));
                }
            }
        }
        Err(LimitError::Refused { name: target.name(), refused: refused.join("; ") })
    }

    /// Writes and reads back. The kernel's value decides: an engine may report a failure after a
    /// change, or a success without one. Returns whether a success was reported as well.
    async fn write_and_see(&self, target: &Target, write: LimitWrite) -> Result<bool, LimitError> {
        let mut tries = 1;
        loop {
            let written = self.write(target, write).await;
            crash::point("between-writes");
            match (target.other_than(write), written) {
                (_, Err(error)) if error.is_final() => return Err(error),
                (Ok(None), written) => return Ok(written.is_ok()),
                (Err(Unseen), Ok(())) => return Ok(true),
                (_, Err(error)) => return Err(error),
                (Ok(Some(_)), Ok(())) if tries < MAX_TRIES => tries += 1,
                (Ok(Some(found)), Ok(())) => {
                    let (name, wanted) = (target.name(), write.to_string());
                    return Err(LimitError::Unverified { name, wanted, found });
                }
            }
        }
    }

    async fn write(&self, target: &Target, write: LimitWrite) -> Result<(), LimitError> {
        let Some(change) = write.change() else {
            let cgroup = target.cgroup.as_ref().ok_or_else(|| unseen(target))?;
            return write_file(cgroup, write).map_err(|error| LimitError::Refused {
                name: target.name(),
                refused: error.to_string(),
            });
        };
        let answer = self.runtime.update(target.id(), change);
        match tokio::time::timeout(ENGINE_TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(|error| LimitError::engine(target.name(), error)),
            Err(_) => Err(silent(target.name())),
        }
    }
}

pub(super) fn write_file(cgroup: &Cgroup, write: LimitWrite) -> std::io::Result<()> {
    match write {
        LimitWrite::File(quota) => cgroup.set_quota(quota),
        LimitWrite::WeightFile(weight) => cgroup.set_weight(weight),
        LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_) | LimitWrite::CpuShares(_) => Ok(()),
    }
}

pub(super) fn kept(name: String, error: OriginalsError) -> LimitError {
    if error.is_of_one_container() {
        LimitError::LeftAlone(name, error)
    } else {
        LimitError::Originals(name, error)
    }
}

pub(super) fn unseen(target: &Target) -> LimitError {
    LimitError::Refused { name: target.name(), refused: "cannot read its control group".to_owned() }
}

pub(super) fn silent(name: String) -> LimitError {
    LimitError::Silent { name, seconds: ENGINE_TIMEOUT.as_secs() }
}

/// A container that has just ended has no control group. The engine would keep the limit, and Docker cannot
/// return to "not set".
fn ensure_runs(target: &Target) -> Result<(), LimitError> {
    if target.container.state.running { Ok(()) } else { Err(LimitError::Gone(target.name())) }
}
