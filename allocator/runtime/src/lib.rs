//! The interface to container engines.
//!
//! An engine lists and describes containers, reports their starts and ends, and keeps their limits. It
//! also creates, starts, pauses, ends and removes them. The first engine is [`docker`]; its types
//! stay there. The manager of a Swarm uses Docker directly, because only Docker has Swarms. On a Kubernetes
//! node the runtime is asked by CRI (`cri`); there, the kubelet alone creates and ends containers.
//!
//! A type of an engine's client never leaves that engine's folder: in this crate, `docker` alone
//! names the client of Docker.

mod container;
#[cfg(feature = "cri")]
pub mod cri;
pub mod docker;
mod error;
pub mod processes;
mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::collections::BTreeMap;

use paceline_cgroup::Used;

pub use container::{Container, DEFAULT_PERIOD, HostCpu, Pod, State};
#[cfg(feature = "cri")]
use cri::Cri;
use docker::Docker;
pub use error::{Cause, RuntimeError};
use processes::Processes;
pub use stats::Stats;

/// A container engine.
#[derive(Clone, Debug)]
pub enum Runtime {
    /// Docker, or an engine with the same API.
    Docker(Docker),
    /// Jobs outside containers, alone or together with containers.
    Processes(Processes),
    /// The container runtime of a Kubernetes node.
    #[cfg(feature = "cri")]
    Cri(Cri),
}

/// The description of an engine and its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The engine's id.
    pub id: Option<String>,
    /// The folder of its data. Engines of one machine may share an id, but never this folder.
    pub data: Option<String>,
    /// The name of its machine.
    pub name: Option<String>,
    /// The number of CPUs.
    pub cpus: Option<i64>,
    /// The machine's memory in bytes.
    pub memory: Option<i64>,
    /// The operating system's name.
    pub system: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The engine's version.
    pub version: Option<String>,
    /// How it makes control groups: `systemd` or `cgroupfs`.
    pub cgroup_driver: Option<String>,
    /// The time of its machine's clock, in RFC 3339.
    pub time: Option<String>,
}

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its full id in the engine.
    pub id: String,
    /// When it was created, in Unix seconds.
    pub created: i64,
    /// Its stage of life.
    pub stage: Stage,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The stage of a container's life, ordered by precedence: the last one has the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It has ended.
    Over,
    /// It has not been started.
    Made,
    /// It is running, paused or not.
    Runs,
}

/// A container was started, has ended or was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEvent {
    /// Its id.
    pub id: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// One change of an existing container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The CPU limit, in billionths of a CPU.
    NanoCpus(i64),
    /// The CPU limit, in microseconds for an unchanged period; −1 is unlimited.
    CpuQuota(i64),
    /// The CPU weight.
    CpuShares(i64),
    /// The CPUs that it may run on, as `0-3,8`.
    Cpus(String),
    /// It is not restarted when it ends.
    StaysEnded,
}

/// A container to create. The image's health check does not run in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its command; if empty, the image's.
    pub command: Vec<String>,
    /// Its environment, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Folders of the machine that it sees, as `OUTSIDE:INSIDE[:ro]`.
    pub binds: Vec<String>,
    /// The CPUs that it may run on; `None` means all.
    pub cpus: Option<String>,
}

/// A copy of a container that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// The name of the new container.
    pub name: String,
    /// The CPUs that it may run on.
    pub cpus: String,
    /// Its limits.
    pub limits: HostCpu,
    /// A label that it has in addition to those of the source.
    pub label: (String, String),
}

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct CopyError {
    /// What failed: a verb and its object.
    pub what: &'static str,
    /// The engine's error.
    pub source: RuntimeError,
}

impl Runtime {
    /// Whether this is the runtime of a Kubernetes node. Its limits are written by the runtime if the
    /// choice is automatic: what is written past it, the kubelet's static CPU manager undoes.
    pub fn is_of_kubernetes(&self) -> bool {
        match self {
            Self::Docker(_) | Self::Processes(_) => false,
            #[cfg(feature = "cri")]
            Self::Cri(_) => true,
        }
    }

    /// Describes the engine and its machine.
    pub async fn describe(&self) -> Result<Description, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.describe().await,
            Self::Processes(processes) => processes.describe().await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.describe().await,
        }
    }

    /// The ids of all running containers that opted in and have all of `labels` (`KEY=VALUE`).
    pub async fn opted_in(&self, labels: &[String]) -> Result<Vec<String>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.opted_in(labels).await,
            Self::Processes(processes) => processes.opted_in(labels).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.opted_in(labels).await,
        }
    }

    /// All containers that have all of `labels` (`KEY` or `KEY=VALUE`), running or not.
    pub async fn list(&self, labels: &[&str]) -> Result<Vec<Listed>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.list(labels).await,
            Self::Processes(processes) => processes.list(labels).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.list(labels).await,
        }
    }

    /// Describes one container; `None` if none has this name or id.
    pub async fn inspect(&self, name: &str) -> Result<Option<Container>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.inspect(name).await,
            Self::Processes(processes) => processes.inspect(name).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.inspect(name).await,
        }
    }

    /// The id of an image; `None` if none has this name.
    pub async fn image(&self, name: &str) -> Result<Option<String>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.image(name).await,
            Self::Processes(processes) => processes.engine()?.image(name).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Ok(None),
        }
    }

    /// Calls `on_event` for every start, end and rename of a container, until the engine's stream ends.
    pub async fn follow(&self, on_event: impl FnMut(ContainerEvent)) {
        match self {
            Self::Docker(docker) => docker.follow(on_event).await,
            Self::Processes(processes) => processes.follow(on_event).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.follow(on_event).await,
        }
    }

    /// Whether the engine still remembers that it removed container `id` at `since` or later, in Unix
    /// seconds. An engine forgets after a restart, and after many other events.
    pub async fn was_removed(&self, id: &str, since: f64, now: f64) -> Result<bool, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.was_removed(id, since, now).await,
            Self::Processes(processes) => processes.was_removed(id, since, now).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.was_removed(id).await,
        }
    }

    /// Calls `on_event` with what a container has used, by the engine's statistics, until these end.
    async fn follow_use(&self, id: &str, on_event: impl FnMut(Used)) {
        match self {
            Self::Docker(docker) => docker.follow_use(id, on_event).await,
            Self::Processes(processes) => processes.follow_use(id, on_event).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.follow_use(id, on_event).await,
        }
    }

    /// Changes an existing container.
    pub async fn update(&self, id: &str, change: Change) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.update(id, change).await,
            Self::Processes(processes) => processes.update(id, change).await,
            #[cfg(feature = "cri")]
            Self::Cri(cri) => cri.update(id, change).await,
        }
    }

    /// Creates a container without starting it. Returns its id.
    pub async fn create(&self, spec: Spec) -> Result<String, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.create(spec).await,
            Self::Processes(processes) => processes.engine()?.create(spec).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("create a container")),
        }
    }

    /// Creates a copy of the container with the id `source`. Returns the copy's id.
    pub async fn copy(&self, source: &str, copy: &Successor) -> Result<String, CopyError> {
        match self {
            Self::Docker(docker) => docker.copy(source, copy).await,
            Self::Processes(processes) => match processes.engine_of(source) {
                Ok(Some(docker)) => docker.copy(source, copy).await,
                Ok(None) => Err(CopyError::of_a_job()),
                Err(source) => Err(CopyError { what: "create a container", source }),
            },
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(CopyError {
                what: "copy the container",
                source: cri::impossible("create a container"),
            }),
        }
    }

    /// Starts a container.
    pub async fn start(&self, name: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.start(name).await,
            Self::Processes(processes) => processes.container(name)?.start(name).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("start a container")),
        }
    }

    /// Asks a container to end, and kills it after `seconds`.
    pub async fn stop(&self, id: &str, seconds: i32) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.stop(id, seconds).await,
            Self::Processes(processes) => processes.stop(id, seconds).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("stop a container")),
        }
    }

    /// Pauses a container.
    pub async fn pause(&self, id: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.pause(id).await,
            Self::Processes(processes) => processes.container(id)?.pause(id).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("pause a container")),
        }
    }

    /// Resumes a paused container.
    pub async fn resume(&self, id: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.resume(id).await,
            Self::Processes(processes) => processes.container(id)?.resume(id).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("resume a container")),
        }
    }

    /// Renames a container.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.rename(from, to).await,
            Self::Processes(processes) => processes.container(from)?.rename(from, to).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("rename a container")),
        }
    }

    /// Removes a container and kills its processes. With `volumes`, also removes its anonymous volumes.
    pub async fn remove(&self, id: &str, volumes: bool) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.remove(id, volumes).await,
            Self::Processes(processes) => processes.container(id)?.remove(id, volumes).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("remove a container")),
        }
    }

    /// Passes all output of a container so far to `take`, piece by piece. An error of `take` ends it.
    pub async fn output<E>(
        &self,
        id: &str,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.output(id, take).await,
            Self::Processes(processes) => processes.container(id)?.output(id, take).await,
            #[cfg(feature = "cri")]
            Self::Cri(_) => Err(cri::impossible("read a container's output")),
        }
    }
}

impl CopyError {
    fn of_a_job() -> Self {
        Self { what: "create a container", source: processes::only_containers("be copied") }
    }
}

/// The short form of a container's id.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

impl From<Docker> for Runtime {
    fn from(docker: Docker) -> Self {
        Self::Docker(docker)
    }
}

impl From<Processes> for Runtime {
    fn from(processes: Processes) -> Self {
        Self::Processes(processes)
    }
}

#[cfg(feature = "cri")]
impl From<Cri> for Runtime {
    fn from(cri: Cri) -> Self {
        Self::Cri(cri)
    }
}
