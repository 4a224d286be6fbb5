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
    RemoveContainerOptions, StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use paceline_api::plain::print;
use paceline_api::signals::{Ending, Signals};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
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
        carry_out(self.client(), run, signals.ending(), signals.reloads()).await
    }
}

async fn carry_out(
    docker: &Client,
    run: ContainerizedRun,
    ending: watch::Receiver<Option<Ending>>,
    reloads: watch::Receiver<u64>,
) -> anyhow::Result<ExitCode> {
    let id = create(docker, run).await?;
    debug!("not root: the allocator runs in container {}", short(&id));
    let ended = follow(docker, &id, ending, reloads).await;
    // It removes itself, unless it was never started. After an error it may still restore limits, since its
    // input has ended: the engine refuses to remove it then.
    drop(docker.remove_container(&id, None::<RemoveContainerOptions>).await);
    ended
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
async fn follow(
    docker: &Client,
    id: &str,
    mut ending: watch::Receiver<Option<Ending>>,
    mut reloads: watch::Receiver<u64>,
) -> anyhow::Result<ExitCode> {
    let attach = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // The input is kept open until the end, although nothing is written to it.
    let AttachContainerResults { mut output, mut input } =
        docker.attach_container(id, Some(attach)).await?;
    let wait = WaitContainerOptionsBuilder::default().condition("next-exit").build();
    let mut ended = std::pin::pin!(docker.wait_container(id, Some(wait)));
    let mut start = std::pin::pin!(docker.start_container(id, None::<StartContainerOptions>));
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
                if let Err(error) = pass_signal_on(docker, id, signal).await {
                    warn!("cannot pass {signal} on to the allocator: {error}; its input ends instead");
                    // If this fails as well, it ends with this process.
                    drop(input.shutdown().await);
                }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::io::AsyncReadExt;
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::Notify;
    use tokio::task::JoinSet;

    use super::*;

    /// An engine with one container, which ends with code 3 when its input does. No signal reaches it.
    #[derive(Debug, Default)]
    struct Engine {
        asked: Mutex<Vec<String>>,
        input_ended: Notify,
    }

    impl Engine {
        /// Answers the request of one connection.
        async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
            let request = head(&mut stream).await?;
            self.asked.lock().unwrap().push(request.clone());
            let is = |part: &str| request.contains(part);
            let json = |status: &str, body: &str| {
                let len = body.len();
                let kind = "Content-Type: application/json";
                format!("HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len}\r\n\r\n{body}")
            };
            let answer = if is("/create") {
                json("201 Created", r#"{"Id":"c","Warnings":[]}"#)
            } else if is("/attach") {
                let upgrade = "Connection: Upgrade\r\nUpgrade: tcp";
                let answer = format!("HTTP/1.1 101 UPGRADED\r\n{upgrade}\r\n\r\n");
                stream.write_all(answer.as_bytes()).await?;
                stream.read_to_end(&mut Vec::new()).await?;
                self.input_ended.notify_one();
                return Ok(());
            } else if is("/wait") {
                self.input_ended.notified().await;
                json("200 OK", "{\"StatusCode\":3}\n")
            } else if is("/kill") {
                json("500 Internal Server Error", r#"{"message":"busy"}"#)
            } else {
                "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
            };
            stream.write_all(answer.as_bytes()).await
        }
    }

    /// Reads a request, and returns its first line.
    async fn head(stream: &mut UnixStream) -> io::Result<String> {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            text.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        stream.read_exact(&mut vec![0; length.unwrap_or(0)]).await?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    #[tokio::test]
    async fn signal_that_the_engine_refuses_ends_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let engine = Arc::new(Engine::default());
        let serve = async {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let engine = Arc::clone(&engine);
                open.spawn(async move { engine.answer(stream).await });
            }
        };
        let docker = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let run = ContainerizedRun {
            image: "paceline".to_owned(),
            arguments: Vec::new(),
            env: Vec::new(),
            binds: Vec::new(),
        };
        let (_ending, ending) = watch::channel(Some(Ending::Interrupted));
        let (_reloads, reloads) = watch::channel(0);
        let code = tokio::select! {
            code = carry_out(docker.client(), run, ending, reloads) => code.unwrap(),
            () = serve => unreachable!("it serves until it is dropped"),
        };
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(3)));
        let asked = engine.asked.lock().unwrap();
        assert!(asked.iter().any(|request| request.contains("/kill?signal=SIGINT")), "{asked:?}");
        assert!(!asked.iter().any(|request| request.contains("force=true")), "{asked:?}");
    }
}
