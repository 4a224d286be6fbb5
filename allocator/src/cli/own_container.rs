//! The allocator in a container of its own, for users who may use the engine but are not root.
//!
//! Whoever may start containers may start one that sees the host's processes and their network
//! namespaces. The container has the capabilities that the allocator needs and no others. It holds
//! on to this process by its standard input: however this process ends, the input closes, and the
//! allocator puts every limit back and goes away.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bollard::Docker;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, KillContainerOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tracing::{debug, warn};

use super::engine::EngineArgs;
use super::plain::print;
use crate::exit::BadUsage;
use crate::log;
use crate::signals::{Ending, Signals};

/// The allocator's own image, of this very version; `PACELINE_ALLOCATOR_IMAGE` names another.
const IMAGE: &str = concat!("paceline/allocator:", env!("CARGO_PKG_VERSION"));

/// One command of `paceline`, to be run in the container.
#[derive(Debug)]
pub(super) struct Errand {
    /// Its words. Paths are absolute, and the same inside.
    pub(super) words: Vec<String>,
    /// The folders that it writes to.
    pub(super) folders: Vec<PathBuf>,
}

/// Whether this process may do by itself what the allocator needs.
pub(super) fn is_needed() -> bool {
    !rustix::process::geteuid().is_root()
}

/// The image to use, if the engine has it.
pub(super) async fn image(docker: &Docker) -> Result<String, BadUsage> {
    let image = std::env::var("PACELINE_ALLOCATOR_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
    match docker.inspect_image(&image).await {
        Ok(_) => Ok(image),
        Err(_) => Err(BadUsage(format!(
            "only root may enter the jobs' network namespaces, and there is no image {image} to run \
             in instead: `make images` builds it"
        ))),
    }
}

/// Runs the errand, and ends as it ends.
pub(super) async fn run(
    docker: &Docker,
    engine: &EngineArgs,
    errand: Errand,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    let id = create(docker, engine, errand).await?;
    debug!("not root: the allocator runs in container {}", crate::driver::short(&id));
    let ended = follow(docker, &id, signals).await;
    // It removes itself; this is for when it was never started.
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    drop(docker.remove_container(&id, Some(options)).await);
    ended
}

async fn create(docker: &Docker, engine: &EngineArgs, errand: Errand) -> anyhow::Result<String> {
    let image = image(docker).await?;
    let mut binds = vec!["/sys/fs/cgroup:/sys/fs/cgroup".to_owned()];
    let mut env = Vec::new();
    match engine.socket() {
        Some(socket) => binds.push(format!("{}:/var/run/docker.sock", socket.display())),
        None => env.push(format!("DOCKER_HOST={}", engine.host)),
    }
    for name in [log::FILTER, log::FORMAT] {
        if let Ok(value) = std::env::var(name) {
            env.push(format!("{name}={value}"));
        }
    }
    for folder in errand.folders {
        // Made here, so that it belongs to the user: the engine would make it root's.
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        binds.push(format!("{0}:{0}", folder.display()));
    }
    let body = ContainerCreateBody {
        image: Some(image),
        cmd: Some(errand.words),
        env: Some(env),
        user: Some("0:0".to_owned()),
        labels: Some([("paceline.allocator".to_owned(), "true".to_owned())].into()),
        attach_stdin: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        host_config: Some(HostConfig {
            binds: Some(binds),
            auto_remove: Some(true),
            pid_mode: Some("host".to_owned()),
            network_mode: Some("host".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::HOST),
            // To enter a network namespace, to look at another user's process, and to get its turn
            // where all cores are taken.
            cap_add: Some(["SYS_ADMIN", "SYS_PTRACE", "SYS_NICE"].map(str::to_owned).into()),
            security_opt: Some(vec!["apparmor=unconfined".to_owned()]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let created = docker.create_container(None::<CreateContainerOptions>, body).await;
    Ok(created.context("the allocator's container cannot be made")?.id)
}

/// Passes its output on and signals to it, until it ends.
async fn follow(docker: &Docker, id: &str, signals: &Signals) -> anyhow::Result<ExitCode> {
    let attach = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // The input is kept open to the end, though nothing is ever written to it.
    let AttachContainerResults { mut output, input: _input } =
        docker.attach_container(id, Some(attach)).await?;
    let wait = WaitContainerOptionsBuilder::default().condition("next-exit").build();
    let mut ended = std::pin::pin!(docker.wait_container(id, Some(wait)));
    let mut start = std::pin::pin!(docker.start_container(id, None::<StartContainerOptions>));
    let (mut ending, mut reloads) = (signals.ending(), signals.reloads());
    let (mut started, mut talks, mut asked) = (false, true, false);
    loop {
        tokio::select! {
            biased;
            // Asked for before the start, so that even a quick end is not missed.
            end = ended.next() => {
                while let (true, Some(Ok(piece))) = (talks, output.next().await) {
                    pass_on(&piece);
                }
                return exit_code(end);
            }
            began = &mut start, if !started => {
                began.context("the allocator's container cannot be started")?;
                started = true;
            }
            piece = output.next(), if talks => match piece {
                Some(Ok(piece)) => pass_on(&piece),
                _ => talks = false,
            },
            ended = async { ending.wait_for(Option::is_some).await.ok().and_then(|e| *e) },
                if started && !asked =>
            {
                asked = true;
                let signal = match ended {
                    Some(Ending::Interrupted) => "SIGINT",
                    Some(Ending::Terminated) | None => "SIGTERM",
                };
                pass_signal_on(docker, id, signal).await?;
            }
            Ok(()) = reloads.changed(), if started && !asked => {
                if let Err(error) = pass_signal_on(docker, id, "SIGHUP").await {
                    warn!("the allocator is not told to read its configuration again: {error}");
                }
            }
        }
    }
}

async fn pass_signal_on(docker: &Docker, id: &str, signal: &str) -> Result<(), EngineError> {
    let options = KillContainerOptionsBuilder::default().signal(signal).build();
    docker.kill_container(id, Some(options)).await
}

fn exit_code(
    end: Option<Result<bollard::models::ContainerWaitResponse, EngineError>>,
) -> anyhow::Result<ExitCode> {
    let status = match end.context("the engine does not say how the allocator ended")? {
        Ok(end) => end.status_code,
        Err(EngineError::DockerContainerWaitError { code, .. }) => code,
        Err(error) => return Err(error.into()),
    };
    Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The container goes on whether somebody still reads what it says or not.
fn pass_on(piece: &LogOutput) {
    if matches!(piece, LogOutput::StdOut { .. }) {
        drop(print(&String::from_utf8_lossy(piece.as_ref())));
    } else {
        drop(io::stderr().write_all(piece.as_ref()));
    }
}
