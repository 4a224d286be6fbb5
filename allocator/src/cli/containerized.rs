//! Runs a command in a container of its own, for users who may use Docker but are not root.
//!
//! A user who may start containers may start one that sees the host's processes and their network
//! namespaces. The container has only the capabilities that the allocator needs. Its standard input
//! is connected to this process. However this process ends, the input closes; then the allocator
//! restores every limit and exits.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use paceline_api::signals::Signals;
use paceline_api::usage::BadUsage;
use paceline_runtime::Runtime;
use paceline_runtime::docker;

use super::engine::EngineArgs;
use super::locks;
use crate::log;

/// The allocator's image of this version. `PACELINE_ALLOCATOR_IMAGE` overrides it.
const IMAGE: &str = concat!("paceline/allocator:", env!("CARGO_PKG_VERSION"));

/// A command of `paceline` that runs in the container.
#[derive(Debug)]
pub(super) struct ContainerizedRun {
    /// Its arguments. Paths are absolute, and the same in the container.
    pub(super) arguments: Vec<String>,
    /// The folders that it reads and writes.
    pub(super) folders: Vec<PathBuf>,
    /// Whether it takes locks. Otherwise it only looks at those that are there.
    pub(super) locks: bool,
    /// Whether it gets the variables of OpenTelemetry. They may hold secrets.
    pub(super) otlp: bool,
}

/// Whether this process lacks the rights that the allocator needs.
pub(super) fn is_needed() -> bool {
    !rustix::process::geteuid().is_root()
}

/// The image to use, if the engine has it.
pub(super) async fn image(engine: &Runtime) -> Result<String, BadUsage> {
    let given = std::env::var("PACELINE_ALLOCATOR_IMAGE").ok().filter(|given| !given.is_empty());
    let image = given.unwrap_or_else(|| IMAGE.to_owned());
    match engine.image(&image).await {
        Ok(Some(_)) => Ok(image),
        Ok(None) | Err(_) => Err(BadUsage(format!(
            "cannot enter the jobs' network namespaces: this needs root, or the image {image} to \
             run a container; build it by `make images`"
        ))),
    }
}

/// Runs the command, and returns its exit code.
pub(super) async fn run(
    engine: &Runtime,
    args: &EngineArgs,
    command: ContainerizedRun,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    let image = image(engine).await?;
    let mut binds = vec!["/sys/fs/cgroup:/sys/fs/cgroup".to_owned()];
    // Files that root makes there belong to this user.
    let own = rustix::process::geteuid().as_raw();
    let mut env = vec![format!("{}={own}", paceline_api::state_folder::OWNER)];
    match args.socket() {
        Some(socket) => binds.push(format!("{}:/var/run/docker.sock", socket.display())),
        None => env.push(format!("DOCKER_HOST={}", args.host)),
    }
    for name in [log::FILTER, log::FORMAT] {
        if let Ok(value) = std::env::var(name) {
            env.push(format!("{name}={value}"));
        }
    }
    if command.otlp {
        let given = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let of_otel = given.filter(|(name, _)| name.starts_with("OTEL_"));
        env.extend(of_otel.map(|(name, value)| format!("{name}={value}")));
    }
    if let Some(locks) = locks::given() {
        env.push(format!("{}={}", locks::VARIABLE, locks.display()));
    }
    let locks = locks::mounted();
    if !command.folders.contains(&locks) && (command.locks || locks.exists()) {
        // The engine creates it for root, so that root's allocators and other users' notice each other.
        binds.push(format!("{0}:{0}", locks.display()));
    }
    for folder in command.folders {
        // Created here, so that it belongs to the user. Docker would create it for root.
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        binds.push(format!("{0}:{0}", folder.display()));
    }
    let run = docker::ContainerizedRun { image, arguments: command.arguments, env, binds };
    match engine {
        Runtime::Docker(docker) => docker.run(run, signals).await,
        Runtime::Processes(_) => Err(BadUsage(
            "cannot manage containers and processes together as a user: run it as root, or with --user for \
             your own processes alone"
                .to_owned(),
        )
        .into()),
        #[cfg(feature = "cri")]
        Runtime::Cri(_) => Err(on_kubernetes().into()),
    }
}

/// The error of a user who is not root, on a Kubernetes node.
pub(super) fn on_kubernetes() -> BadUsage {
    BadUsage(
        "cannot enter the jobs' network namespaces: this needs root; on a Kubernetes node, run it as root or \
         as a pod"
            .to_owned(),
    )
}
