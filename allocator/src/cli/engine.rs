//! Reaching the engine.

use std::path::PathBuf;

use anyhow::Context;
use bollard::Docker;
use clap::Args;

use crate::exit::NoEngine;
use crate::observe::node::Machine;

/// Where Docker listens unless it is told otherwise.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// Which engine.
#[derive(Clone, Debug, Args)]
pub(super) struct EngineArgs {
    /// The Docker engine, by its socket or its address
    #[arg(long, global = true, env = "DOCKER_HOST", value_name = "unix://PATH|tcp://HOST:PORT", default_value = DEFAULT_HOST)]
    pub(super) host: String,

    /// The machine's /proc: a container that does not see the machine's processes has it mounted
    /// elsewhere
    #[arg(long, global = true, env = "PACELINE_PROC", value_name = "DIR", default_value = "/proc")]
    pub(super) proc: PathBuf,
}

/// What the engine says of itself.
#[derive(Clone, Debug)]
pub(super) struct EngineInfo {
    /// Its own id: limits are kept apart by it.
    pub(super) id: String,
    /// The name of its machine.
    pub(super) name: String,
    /// The machine.
    pub(super) machine: Machine,
}

impl EngineArgs {
    /// Connects, and makes sure that somebody answers.
    pub(super) async fn connect(&self) -> anyhow::Result<Docker> {
        let unreachable = |reason: String| NoEngine { host: self.host.clone(), reason };
        let docker = Docker::connect_with_host(&self.host)
            .map_err(|error| unreachable(innermost(&error)))?;
        // The engine may be older than this program: both speak the older one's version.
        docker.negotiate_version().await.map_err(|error| unreachable(innermost(&error)).into())
    }

    /// The path of the engine's socket, if it is one.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        self.host.strip_prefix("unix://").map(PathBuf::from)
    }

    /// Asks the engine for its machine.
    pub(super) async fn info(&self, docker: &Docker) -> anyhow::Result<EngineInfo> {
        let info = docker.info().await.context("the engine does not describe itself")?;
        let cpus = info.ncpu.and_then(|cpus| u32::try_from(cpus).ok()).filter(|cpus| *cpus > 0);
        let memory = info.mem_total.and_then(|bytes| u64::try_from(bytes).ok());
        Ok(EngineInfo {
            id: info.id.context("the engine has no id")?,
            name: info.name.unwrap_or_default(),
            machine: Machine {
                cpus: f64::from(cpus.context("the engine does not know its CPUs")?),
                memory: paceline_policy::unit::counter(memory.unwrap_or(0)),
                proc: self.proc.clone(),
            },
        })
    }
}

/// The last cause of an error, which is where a failure to connect tells its reason.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
