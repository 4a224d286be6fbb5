use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::wait::until;

/// An engine of a test's own, which may be restarted. Its containers have no network.
#[derive(Debug)]
pub struct PrivateEngine {
    folder: PathBuf,
    daemon: Child,
    docker: Docker,
}

impl PrivateEngine {
    /// Whether this machine has the programs to start an engine.
    pub fn is_possible() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        is_there("dockerd") && is_there("unshare")
    }

    /// Starts an engine that keeps everything below `folder`.
    pub async fn start(folder: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        // The machine's own configuration is for another engine.
        std::fs::write(folder.join("daemon.json"), "{}")?;
        let socket = folder.join("docker.sock");
        let mut daemon = daemon(&folder)?;
        let docker = match connect(&socket).await {
            Ok(docker) => docker,
            Err(error) => {
                end(&mut daemon).await?;
                return Err(error.context(said(&folder)));
            }
        };
        Ok(Self { folder, daemon, docker })
    }

    /// The engine.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Its address, as in `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    /// Restarts the engine; its containers keep running.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        end(&mut self.daemon).await?;
        self.daemon = daemon(&self.folder)?;
        let answer = || async { Ok(self.docker.ping().await.ok().map(drop)) };
        let answered = until("the private engine answers again", answer).await;
        answered.with_context(|| said(&self.folder))
    }

    /// Removes its containers and ends it.
    pub async fn clear(mut self) -> anyhow::Result<()> {
        let all = ListContainersOptionsBuilder::default().all(true).build();
        for container in self.docker.list_containers(Some(all)).await? {
            let id = container.id.unwrap_or_default();
            let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            self.docker.remove_container(&id, Some(force)).await?;
        }
        end(&mut self.daemon).await?;
        // An engine with live restore leaves its folder bind-mounted upon itself, and a mount point
        // cannot be removed. If it is not a mount, `umount` fails without harm.
        let mut unmount = Command::new("umount");
        unmount.arg(self.folder.join("data")).stderr(Stdio::null());
        unmount.status().await.context("umount")?;
        Ok(())
    }
}

/// Waits for an engine that starts.
async fn connect(socket: &Path) -> anyhow::Result<Docker> {
    let path = socket.to_str().context("a path is text")?;
    until("the private engine answers", || async {
        let Ok(docker) = Docker::connect_with_unix(path, 60, API_DEFAULT_VERSION) else {
            return Ok(None);
        };
        Ok(docker.negotiate_version().await.ok())
    })
    .await
}

/// Ends it by SIGTERM, with its own child processes, but not its containers.
async fn end(daemon: &mut Child) -> anyhow::Result<()> {
    let id = daemon.id().context("the private engine has ended by itself")?;
    let pid = Pid::from_raw(i32::try_from(id)?).context("no process has id 0")?;
    kill_process(pid, Signal::TERM)?;
    daemon.wait().await?;
    Ok(())
}

/// What the engine has logged.
fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Starts an engine that shares nothing with the machine's but the control groups.
fn daemon(folder: &Path) -> anyhow::Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"))?;
    let place = |name: &str| folder.join(name).into_os_string();
    // In the machine's own network namespace it would remove the bridge of the machine's engine.
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "dockerd"]);
    for (option, name) in [
        ("--config-file", "daemon.json"),
        ("--data-root", "data"),
        ("--exec-root", "exec"),
        ("--pidfile", "pid"),
    ] {
        command.arg(option).arg(place(name));
    }
    command.arg("--host").arg(format!("unix://{}", folder.join("docker.sock").display()));
    command.args(["--bridge", "none", "--iptables=false", "--ip6tables=false"]);
    command.args(["--storage-driver", "vfs", "--live-restore"]);
    command.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    Ok(command.spawn()?)
}
