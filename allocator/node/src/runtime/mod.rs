//! The interface to container engines.
//!
//! An engine lists and describes containers, reports their starts and ends, and keeps their limits. It
//! also creates, starts, pauses, ends and removes them. The first engine is [`docker`]; its types
//! stay there. The manager of a Swarm uses Docker directly, because only Docker has Swarms.
//!
//! A type of an engine's client never leaves that engine's folder: in this crate, `docker` alone
//! names the client of Docker.

mod container;
pub mod docker;
mod error;
mod stats;

use std::collections::BTreeMap;

use paceline_cgroup::Used;

pub use container::{Container, DEFAULT_PERIOD, HostCpu, State};
use docker::Docker;
pub use error::{Cause, RuntimeError};
pub use stats::Stats;

/// A container engine.
#[derive(Clone, Debug)]
pub enum Runtime {
    /// Docker, or an engine with the same API.
    Docker(Docker),
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
    /// Describes the engine and its machine.
    pub async fn describe(&self) -> Result<Description, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.describe().await,
        }
    }

    /// The ids of all running containers that opted in and have all of `labels` (`KEY=VALUE`).
    pub async fn opted_in(&self, labels: &[String]) -> Result<Vec<String>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.opted_in(labels).await,
        }
    }

    /// All containers that have all of `labels` (`KEY` or `KEY=VALUE`), running or not.
    pub async fn list(&self, labels: &[&str]) -> Result<Vec<Listed>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.list(labels).await,
        }
    }

    /// Describes one container; `None` if none has this name or id.
    pub async fn inspect(&self, name: &str) -> Result<Option<Container>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.inspect(name).await,
        }
    }

    /// The id of an image; `None` if none has this name.
    pub async fn image(&self, name: &str) -> Result<Option<String>, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.image(name).await,
        }
    }

    /// Calls `on_event` for every start, end and rename of a container, until the engine's stream ends.
    pub async fn follow(&self, on_event: impl FnMut(ContainerEvent)) {
        match self {
            Self::Docker(docker) => docker.follow(on_event).await,
        }
    }

    /// Whether the engine still remembers that it removed container `id` at `since` or later, in Unix
    /// seconds. An engine forgets after a restart, and after many other events.
    pub async fn was_removed(&self, id: &str, since: f64, now: f64) -> Result<bool, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.was_removed(id, since, now).await,
        }
    }

    /// Calls `on_event` with what a container has used, by the engine's statistics, until these end.
    async fn follow_use(&self, id: &str, on_event: impl FnMut(Used)) {
        match self {
            Self::Docker(docker) => docker.follow_use(id, on_event).await,
        }
    }

    /// Changes an existing container.
    pub async fn update(&self, id: &str, change: Change) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.update(id, change).await,
        }
    }

    /// Creates a container without starting it. Returns its id.
    pub async fn create(&self, spec: Spec) -> Result<String, RuntimeError> {
        match self {
            Self::Docker(docker) => docker.create(spec).await,
        }
    }

    /// Creates a copy of the container with the id `source`. Returns the copy's id.
    pub async fn copy(&self, source: &str, copy: &Successor) -> Result<String, CopyError> {
        match self {
            Self::Docker(docker) => docker.copy(source, copy).await,
        }
    }

    /// Starts a container.
    pub async fn start(&self, name: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.start(name).await,
        }
    }

    /// Asks a container to end, and kills it after `seconds`.
    pub async fn stop(&self, id: &str, seconds: i32) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.stop(id, seconds).await,
        }
    }

    /// Pauses a container.
    pub async fn pause(&self, id: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.pause(id).await,
        }
    }

    /// Resumes a paused container.
    pub async fn resume(&self, id: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.resume(id).await,
        }
    }

    /// Renames a container.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.rename(from, to).await,
        }
    }

    /// Removes a container and kills its processes. With `volumes`, also removes its anonymous volumes.
    pub async fn remove(&self, id: &str, volumes: bool) -> Result<(), RuntimeError> {
        match self {
            Self::Docker(docker) => docker.remove(id, volumes).await,
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
        }
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
