//! The connection to the container engine.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use paceline_node::observe::node::Machine;
use paceline_node::runtime::Runtime;
use paceline_node::runtime::docker::Docker;

use crate::exit::NoEngine;

/// Docker's default socket.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// The container engine to use.
#[derive(Clone, Debug, Args)]
pub(super) struct EngineArgs {
    /// The socket or address of the Docker engine
    #[arg(long, global = true, env = "DOCKER_HOST", value_name = "unix://PATH|tcp://HOST:PORT", default_value = DEFAULT_HOST)]
    pub(super) host: String,

    /// The machine's /proc. Set it in a container that has the machine's /proc mounted
    /// elsewhere
    #[arg(long, global = true, env = "PACELINE_PROC", value_name = "DIR", default_value = "/proc")]
    pub(super) proc: PathBuf,
}

/// The engine's description of itself.
#[derive(Clone, Debug)]
pub(super) struct EngineInfo {
    /// The engine's id. Original limits are stored separately for each engine.
    pub(super) id: String,
    /// The folder of its data.
    pub(super) data: String,
    /// The name of its machine.
    pub(super) name: String,
    /// The machine.
    pub(super) machine: Machine,
}

impl EngineArgs {
    /// Connects, and checks that the engine answers.
    pub(super) async fn connect(&self) -> anyhow::Result<Runtime> {
        self.docker().await.map(Runtime::from)
    }

    /// The same, for functions that only Docker has.
    pub(super) async fn docker(&self) -> anyhow::Result<Docker> {
        Docker::connect(&self.host)
            .await
            .map_err(|error| NoEngine { host: self.host.clone(), reason: innermost(&error) }.into())
    }

    /// The path of the engine's socket, if it has one.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        self.host.strip_prefix("unix://").map(PathBuf::from)
    }

    /// Asks the engine for its machine.
    pub(super) async fn info(&self, engine: &Runtime) -> anyhow::Result<EngineInfo> {
        let info = engine.describe().await.context("cannot read the engine's description")?;
        let cpus = info.cpus.and_then(|cpus| u32::try_from(cpus).ok()).filter(|cpus| *cpus > 0);
        let memory = info.memory.and_then(|bytes| u64::try_from(bytes).ok());
        Ok(EngineInfo {
            id: info.id.context("the engine reports no id")?,
            data: info.data.unwrap_or_default(),
            name: info.name.unwrap_or_default(),
            machine: Machine {
                cpus: f64::from(cpus.context("the engine does not report its CPUs")?),
                memory: paceline_policy::unit::counter(memory.unwrap_or(0)),
                proc: self.proc.clone(),
            },
        })
    }
}

/// The last cause of an error. For a failed connection it is the reason.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
