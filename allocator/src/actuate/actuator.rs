use std::fmt;
use std::path::PathBuf;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerUpdateBody, RestartPolicy, RestartPolicyNameEnum};
use bollard::query_parameters::StopContainerOptionsBuilder;
use paceline_policy::limiter::Setting;

use super::originals::{Original, Originals, OriginalsError};
use super::ways::{self, Way};
use crate::observe::cgroup::Cgroup;
use crate::observe::container::{self, Container, HostCpu, is_missing};

/// Writes limits to the containers of one engine, and puts them back.
#[derive(Debug)]
pub struct Actuator {
    docker: Docker,
    originals: Originals,
    proc: PathBuf,
    cpus: f64,
}

/// Why a limit was not written or not put back.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The container is no more: nothing is left to do.
    #[error("container {0} is gone")]
    Gone(String),
    /// The engine failed.
    #[error("the engine failed on container {0}")]
    Engine(String, #[source] EngineError),
    /// The original could not be kept, so nothing was written; or could not be read.
    #[error("the original limits of container {0} cannot be kept")]
    Originals(String, #[source] OriginalsError),
    /// Every way was refused.
    #[error("no way is left to change the limit of container {name}: {refused}")]
    Refused {
        /// The container.
        name: String,
        /// What was tried, and the answers.
        refused: String,
    },
}

/// How a container's limits were put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The kernel enforces what it did, and the engine keeps what it did.
    Exactly,
    /// The kernel enforces what it did; the engine, which has no way back to "not set", keeps
    /// something that comes to the same.
    Equivalently,
    /// The container is no more.
    Gone,
}

impl Actuator {
    /// An actuator for a node with `cpus` CPUs, whose `/proc` is at `proc`.
    pub fn new(docker: Docker, originals: Originals, proc: PathBuf, cpus: f64) -> Self {
        Self { docker, originals, proc, cpus }
    }

    /// Writes one setting for container `id`. Returns what is in force then, as read back.
    pub async fn set(&self, id: &str, setting: Setting) -> Result<Setting, LimitError> {
        let container = self.inspect(id).await?;
        let cgroup = self.cgroup(&container);
        self.keep_original(&container, cgroup.as_ref())?;
        match setting {
            Setting::Cap(share) => {
                let ways = ways::to_limit(container.host_config, share, self.cpus);
                self.first_accepted(&container, cgroup.as_ref(), &ways).await?;
                let quota = cgroup.and_then(|cgroup| cgroup.quota().ok());
                Ok(Setting::Cap(quota.map_or(share, |quota| quota.share(self.cpus))))
            }
            Setting::Weight(weight) => {
                let way = ways::to_weigh(i64::try_from(weight).unwrap_or(i64::MAX));
                self.first_accepted(&container, None, &[way]).await?;
                let now = self.inspect(id).await?.host_config.weight();
                Ok(Setting::Weight(now.unwrap_or(weight)))
            }
        }
    }

    /// Ends container `id` for good: it is not started again, is asked to end, and has `patience`
    /// seconds to do so (T13).
    pub async fn end(&self, id: &str, patience: i32) -> Result<(), LimitError> {
        let failed = |error| engine_error(id.to_owned(), error);
        let never =
            RestartPolicy { name: Some(RestartPolicyNameEnum::NO), ..RestartPolicy::default() };
        let body = ContainerUpdateBody { restart_policy: Some(never), ..Default::default() };
        self.docker.update_container(id, body).await.map_err(failed)?;
        let options = StopContainerOptionsBuilder::default().t(patience).build();
        self.docker.stop_container(id, Some(options)).await.map_err(failed)
    }

    /// On return, what the container had before the first write to it is on the disk.
    fn keep_original(
        &self,
        container: &Container,
        cgroup: Option<&Cgroup>,
    ) -> Result<(), LimitError> {
        let quota = cgroup.and_then(|cgroup| cgroup.quota().ok());
        let (id, name) = (container.id.clone(), container.name.clone());
        let original = Original::new(id, name, container.host_config, quota);
        self.originals
            .keep(&original)
            .map_err(|error| LimitError::Originals(container.name.clone(), error))
    }

    /// Puts back what container `id` had before the first write; nothing if there was none.
    ///
    /// The engine's ways come first, since what it keeps is what a restart brings back. Then the
    /// kernel's own value is set right where the engine's word for it differs.
    pub async fn restore(&self, id: &str) -> Result<Option<Restored>, LimitError> {
        let failed = |error| LimitError::Originals(id.to_owned(), error);
        let Some(original) = self.originals.get(id).map_err(failed)? else { return Ok(None) };
        let restored = match self.put_back(&original).await {
            Err(LimitError::Gone(_)) => Restored::Gone,
            other => other?,
        };
        self.originals.forget(id).map_err(failed)?;
        Ok(Some(restored))
    }

    /// The ids of all containers that have something to be put back.
    pub fn pending(&self) -> Result<Vec<String>, OriginalsError> {
        self.originals.ids()
    }

    async fn put_back(&self, original: &Original) -> Result<Restored, LimitError> {
        let container = self.inspect(&original.id).await?;
        let mut refused = Vec::new();
        let (was, is) = (original.host_config, container.host_config);
        if was.cpu_shares != is.cpu_shares
            && let Err(error) = self.write(&container, None, ways::to_weigh(was.cpu_shares)).await
        {
            refused.push(chain(&error));
        }
        if (HostCpu { cpu_shares: was.cpu_shares, ..is }) != was {
            for way in ways::to_restore(was, self.cpus) {
                match self.write(&container, None, way).await {
                    Ok(()) => break,
                    Err(LimitError::Gone(name)) => return Err(LimitError::Gone(name)),
                    Err(error) => refused.push(format!("{way}: {}", chain(&error))),
                }
            }
        }
        let container = self.inspect(&original.id).await?;
        if let (Some(cgroup), Some(quota)) = (self.cgroup(&container), original.cgroup) {
            if cgroup.quota().ok() != Some(quota)
                && let Err(error) = cgroup.set_quota(quota)
            {
                refused.push(format!("{}: {error}", Way::File(quota)));
            }
            let now = cgroup.quota().map(|now| now.share(self.cpus)).ok();
            if now != Some(quota.share(self.cpus)) {
                let name = container.name.clone();
                return Err(LimitError::Refused { name, refused: refused.join("; ") });
            }
        }
        let now = container.host_config;
        if now == original.host_config {
            Ok(Restored::Exactly)
        } else if ways::equivalent(original.host_config, now, self.cpus) {
            Ok(Restored::Equivalently)
        } else {
            let name = container.name.clone();
            Err(LimitError::Refused { name, refused: refused.join("; ") })
        }
    }

    async fn first_accepted(
        &self,
        container: &Container,
        cgroup: Option<&Cgroup>,
        ways: &[Way],
    ) -> Result<(), LimitError> {
        let mut refused = Vec::new();
        for way in ways {
            match self.write(container, cgroup, *way).await {
                Ok(()) => return Ok(()),
                Err(LimitError::Gone(name)) => return Err(LimitError::Gone(name)),
                Err(error) => refused.push(format!("{way}: {}", chain(&error))),
            }
        }
        let name = container.name.clone();
        Err(LimitError::Refused { name, refused: refused.join("; ") })
    }

    async fn write(
        &self,
        container: &Container,
        cgroup: Option<&Cgroup>,
        way: Way,
    ) -> Result<(), LimitError> {
        let name = || container.name.clone();
        if let Some(request) = way.request() {
            let answer = self.docker.update_container(&container.id, request).await;
            return answer.map_err(|error| engine_error(name(), error));
        }
        let Way::File(quota) = way else { return Ok(()) };
        let refused = |refused| LimitError::Refused { name: name(), refused };
        let cgroup = cgroup.ok_or_else(|| refused("its cgroup cannot be seen".to_owned()))?;
        cgroup.set_quota(quota).map_err(|error| refused(error.to_string()))
    }

    async fn inspect(&self, id: &str) -> Result<Container, LimitError> {
        match container::inspect(&self.docker, id).await {
            Ok(Some(container)) => Ok(container),
            Ok(None) => Err(LimitError::Gone(id.to_owned())),
            Err(error) => Err(LimitError::Engine(id.to_owned(), error)),
        }
    }

    fn cgroup(&self, container: &Container) -> Option<Cgroup> {
        container.pid.and_then(|pid| Cgroup::of(&self.proc, pid).ok())
    }
}

fn engine_error(name: String, error: EngineError) -> LimitError {
    if is_missing(&error) { LimitError::Gone(name) } else { LimitError::Engine(name, error) }
}

/// An error and its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exactly => "as it was",
            Self::Equivalently => "as it was (the engine keeps all CPUs in place of no limit)",
            Self::Gone => "the container is gone",
        })
    }
}
