//! Runs a command of this program in a container, which has the capabilities that it needs and sees the
//! machine's processes. It ends with this process, which holds its standard input open.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as EngineError;
use bollard::models::{
    ContainerCreateBody, ContainerWaitResponse, HostConfig, HostConfigCgroupnsModeEnum,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, KillContainerOptionsBuilder,
    StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use paceline_api::plain::print;
use paceline_api::signals::{Ending, Signals};
use tracing::{debug, warn};

use super::{Client, Docker};
use crate::short;

/// A command to run in a container.
#[derive(Debug)]
pub struct ContainerizedRun {
    /// The image, whose entry point is this program.
    pub image: String,
    /// The command's arguments.
    pub arguments: Vec<String>,
    /// Its environment, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The machine's files that it can access, each as `OUTSIDE:INSIDE`.
    pub binds: Vec<String>,
}

impl Docker {
    /// Runs the command, and returns its exit code.
    pub async fn run(&self, run: ContainerizedRun, signals: &Signals) -> anyhow::Result<ExitCode> {
        let id = create(self.client(), run).await?;
        debug!("not root: the allocator runs in container {}", short(&id));
        let ended = follow(self.client(), &id, signals).await;
        // It removes itself, unless it was never started.
        drop(self.remove(&id, false).await);
        ended
    }
}

async fn create(docker: &Client, run: ContainerizedRun) -> anyhow::Result<String> {
    let body = ContainerCreateBody {
        image: Some(run.image),
        cmd: Some(run.arguments),
        env: Some(run.env),
        user: Some("0:0".to_owned()),
        labels: Some([("paceline.allocator".to_owned(), "true".to_owned())].into()),
        attach_stdin: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        host_config: Some(HostConfig {
            binds: Some(run.binds),
            auto_remove: Some(true),
            pid_mode: Some("host".to_owned()),
            network_mode: Some("host".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::HOST),
            // For network namespaces, for other users' processes, and for CPU time on a busy machine.
            cap_add: Some(["SYS_ADMIN", "SYS_PTRACE", "SYS_NICE"].map(str::to_owned).into()),
            security_opt: Some(vec!["apparmor=unconfined".to_owned()]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let created = docker.create_container(None::<CreateContainerOptions>, body).await;
    Ok(created.context("cannot create the allocator's container")?.id)
}

/// Forwards its output and the signals to it, until it ends.
async fn follow(docker: &Client, id: &str, signals: &Signals) -> anyhow::Result<ExitCode> {
    let attach = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // The input is kept open until the end, although nothing is written to it.
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
            // Requested before the start, so that a quick end is not missed.
            end = ended.next() => {
                while let (true, Some(Ok(piece))) = (talks, output.next().await) {
                    pass_on(&piece);
                }
                return exit_code(end);
            }
            began = &mut start, if !started => {
                began.context("cannot start the allocator's container")?;
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
                    warn!("cannot ask the allocator to reload its configuration: {error}");
                }
            }
        }
    }
}

async fn pass_signal_on(docker: &Client, id: &str, signal: &str) -> Result<(), EngineError> {
    let options = KillContainerOptionsBuilder::default().signal(signal).build();
    docker.kill_container(id, Some(options)).await
}

fn exit_code(end: Option<Result<ContainerWaitResponse, EngineError>>) -> anyhow::Result<ExitCode> {
    let status = match end.context("the container engine did not report how the allocator ended")? {
        Ok(end) => end.status_code,
        Err(EngineError::DockerContainerWaitError { code, .. }) => code,
        Err(error) => return Err(error.into()),
    };
    Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Forwards output. A failure is ignored: the container continues without a reader.
fn pass_on(piece: &LogOutput) {
    if matches!(piece, LogOutput::StdOut { .. }) {
        drop(print(&String::from_utf8_lossy(piece.as_ref())));
    } else {
        drop(io::stderr().write_all(piece.as_ref()));
    }
}
