//! The connection to the container engine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use paceline_api::usage::BadUsage;
use paceline_node::observe::node::Machine;
use paceline_runtime::Runtime;
use paceline_runtime::docker::Docker;
use paceline_runtime::processes::{ManagerError, Managing, Processes};
use tracing::warn;

use super::containerized;
use crate::exit::NoEngine;

/// Docker's default socket.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
/// Containerd's default socket.
const DEFAULT_CRI: &str = "unix:///run/containerd/containerd.sock";
/// What is at the address of a Docker engine.
const DOCKER: &str = "the Docker engine";
/// The heading of these options, which every command has, in its help.
const HEADING: &str = "The jobs' machine";
/// How long an engine may take to answer first. One that is starting, or overloaded, needs seconds.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What runs the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Containers of Docker, or of an engine with the same API
    Docker,
    /// Jobs that `paceline exec` has started
    Processes,
    /// Pods of a Kubernetes node, by the CRI socket of its container runtime; alone
    Cri,
}

/// The container engine to use.
#[derive(Clone, Debug, Args)]
pub(super) struct EngineArgs {
    /// What runs the jobs: containers, jobs of `paceline exec`, or both under one policy; or a Kubernetes node
    #[arg(
        long,
        global = true, help_heading = HEADING,
        env = "PACELINE_RUNTIME",
        value_name = "KIND,…",
        value_enum,
        value_delimiter = ',',
        default_value = "docker"
    )]
    runtime: Vec<Kind>,

    /// Only this user's jobs of `paceline exec`: it needs no root. With `exec`, use the user's systemd
    #[arg(long, global = true, help_heading = HEADING)]
    pub(super) user: bool,

    /// The CRI socket of a Kubernetes node's container runtime, for `--runtime cri`
    #[arg(long, global = true, help_heading = HEADING, env = "CONTAINER_RUNTIME_ENDPOINT", value_name = "unix://PATH", default_value = DEFAULT_CRI)]
    pub(super) cri: String,

    /// The socket or address of the Docker engine
    #[arg(long, global = true, help_heading = HEADING, env = "DOCKER_HOST", value_name = "unix://PATH|tcp://HOST:PORT", default_value = DEFAULT_HOST)]
    pub(super) host: String,

    /// The machine's /proc. Set it in a container that has the machine's /proc mounted
    /// elsewhere
    #[arg(long, global = true, help_heading = HEADING, env = "PACELINE_PROC", value_name = "DIR", default_value = "/proc")]
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
        if self.is_of_kubernetes() {
            return self.kubernetes().await;
        }
        let containers = self.runtime.contains(&Kind::Docker) && !self.is_of_user();
        let docker = if containers { Some(self.docker().await?) } else { None };
        match docker {
            Some(docker) if !self.runtime.contains(&Kind::Processes) => Ok(docker.into()),
            beside => {
                let uid = rustix::process::geteuid().as_raw();
                Ok(Processes::new(&self.proc, uid, beside).into())
            }
        }
    }

    /// The runtime of a Kubernetes node.
    #[cfg(feature = "cri")]
    async fn kubernetes(&self) -> anyhow::Result<Runtime> {
        use paceline_runtime::cri::Cri;

        self.check_kinds()?;
        let cri = Cri::at(&self.cri, &self.proc).map_err(|error| BadUsage(error.to_string()))?;
        let runtime = Runtime::from(cri);
        let described = in_time(runtime.describe()).await;
        described.map_err(|reason| NoEngine {
            engine: "the container runtime",
            host: self.cri.clone(),
            reason,
        })?;
        Ok(runtime)
    }

    /// The runtime of a Kubernetes node, which this program is built without.
    #[cfg(not(feature = "cri"))]
    #[expect(clippy::unused_async, reason = "it replaces an async function")]
    async fn kubernetes(&self) -> anyhow::Result<Runtime> {
        Err(BadUsage(
            "cannot use --runtime cri: this paceline is built without it; build it with the \
             feature cri"
                .to_owned(),
        )
        .into())
    }

    /// A Kubernetes node is managed alone: its pods have bounds of their own.
    #[cfg(feature = "cri")]
    fn check_kinds(&self) -> Result<(), BadUsage> {
        if self.runtime.iter().all(|kind| *kind == Kind::Cri) && !self.user {
            return Ok(());
        }
        Err(BadUsage(
            "cannot manage a Kubernetes node together with other jobs: give --runtime cri alone"
                .to_owned(),
        ))
    }

    /// Whether this is the runtime of a Kubernetes node.
    pub(super) fn is_of_kubernetes(&self) -> bool {
        self.runtime.contains(&Kind::Cri)
    }

    /// Whether this is about containers of an engine, alone or beside other jobs.
    pub(super) fn has_containers(&self) -> bool {
        !self.is_of_user() && self.runtime.iter().any(|kind| *kind != Kind::Processes)
    }

    /// Whether this is about jobs outside containers, alone or beside containers.
    pub(super) fn has_processes(&self) -> bool {
        self.user || self.runtime.contains(&Kind::Processes)
    }

    /// The options that name the same jobs in another command; empty for Docker alone.
    pub(super) fn as_options(&self) -> String {
        if self.is_of_user() {
            return " --user".to_owned();
        }
        match (self.has_processes(), self.runtime.contains(&Kind::Docker)) {
            (true, true) => " --runtime docker,processes".to_owned(),
            (true, false) => " --runtime processes".to_owned(),
            (false, _) => String::new(),
        }
    }

    /// The command that lists what can be managed.
    pub(super) fn how_to_list(&self) -> &'static str {
        if self.is_of_kubernetes() {
            "`crictl ps`"
        } else if self.has_containers() {
            "`docker ps`"
        } else {
            "`paceline watch`"
        }
    }

    /// The address of the engine.
    pub(super) fn address(&self) -> &str {
        if self.is_of_kubernetes() { &self.cri } else { &self.host }
    }

    /// Begins to manage jobs outside containers, if that is asked for. Others notice it until the
    /// result is dropped.
    pub(super) fn manage_processes(&self) -> anyhow::Result<Option<Managing>> {
        if !self.has_processes() {
            return Ok(None);
        }
        let uid = rustix::process::geteuid().as_raw();
        match Managing::begin(uid) {
            // For root, the locks of the engine decide.
            Err(error @ ManagerError::Own(0)) => {
                warn!("{error}");
                Ok(None)
            }
            managing => Ok(Some(managing?)),
        }
    }

    /// Whether this is about one user's own jobs, which needs no root.
    pub(super) fn is_of_user(&self) -> bool {
        let only_processes = self.runtime.iter().all(|kind| *kind == Kind::Processes);
        !rustix::process::geteuid().is_root() && (self.user || only_processes)
    }

    /// Whether this process lacks the rights that it needs.
    pub(super) fn lacks_rights(&self) -> bool {
        containerized::is_needed() && !self.is_of_user()
    }

    /// Whether this process lacks the rights that it needs, and runs in a container of its own instead. On a
    /// Kubernetes node only root can do that.
    pub(super) fn needs_container(&self) -> Result<bool, BadUsage> {
        if self.lacks_rights() && self.is_of_kubernetes() {
            return Err(containerized::on_kubernetes());
        }
        Ok(self.lacks_rights())
    }

    /// The same, for functions that only Docker has.
    pub(super) async fn docker(&self) -> anyhow::Result<Docker> {
        if self.is_of_kubernetes() {
            return Err(BadUsage(
                "cannot use --runtime cri here: this command needs Docker".to_owned(),
            )
            .into());
        }
        self.check_host()?;
        in_time(Docker::connect(&self.host))
            .await
            .map_err(|reason| NoEngine { engine: DOCKER, host: self.host.clone(), reason }.into())
    }

    /// A mistyped address is an error of usage, and not an engine that is not reachable.
    fn check_host(&self) -> Result<(), BadUsage> {
        if Docker::is_address(&self.host) {
            return Ok(());
        }
        let host = &self.host;
        Err(BadUsage(format!(
            "invalid --host {host:?}: expected unix://PATH or tcp://HOST:PORT, for example \
             {DEFAULT_HOST}; DOCKER_HOST is its default"
        )))
    }

    /// The path of the engine's socket, if it has one.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        self.address().strip_prefix("unix://").map(PathBuf::from)
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

/// The first answer of an engine, or why it has none.
async fn in_time<T, E: std::error::Error>(
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(FIRST_ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| innermost(&error)),
        Err(_) => Err(format!("it did not answer within {} s", FIRST_ANSWER_TIMEOUT.as_secs())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn engine_that_never_answers_is_given_up() {
        let answer = std::future::pending::<Result<(), std::io::Error>>();
        assert_eq!(in_time(answer).await, Err("it did not answer within 30 s".to_owned()));
    }
}
