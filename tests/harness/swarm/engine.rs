use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use bollard::query_parameters::LeaveSwarmOptionsBuilder;
use bollard::{API_DEFAULT_VERSION, Docker};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::run;
use crate::wait::until;

/// One machine of a Swarm of a test's own: an engine.
#[derive(Debug)]
pub struct SwarmEngine {
    /// Its host's name.
    pub host: String,
    folder: PathBuf,
    namespace: String,
    cgroup: String,
    /// The only CPU that it sees, if it is bound to one.
    cpu: Option<usize>,
    /// The engine's process, while it runs and is this process's child.
    daemon: Mutex<Option<Child>>,
    docker: Docker,
}

impl SwarmEngine {
    pub(super) async fn new(
        folder: PathBuf,
        name: &str,
        host: String,
        cpu: Option<usize>,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("daemon.json"), "{}")?;
        let (namespace, cgroup) = (format!("{name}-{host}"), format!("/{name}-{host}"));
        let daemon = daemon(&folder, &namespace, &cgroup, (&host, cpu))?;
        let docker = answers(&folder).await?;
        let daemon = Mutex::new(Some(daemon));
        Ok(Self { host, folder, namespace, cgroup, cpu, daemon, docker })
    }

    /// Connects to an engine that another process has started.
    pub(super) async fn attach(folder: PathBuf, name: &str, host: String) -> anyhow::Result<Self> {
        let docker = answers(&folder).await?;
        let (namespace, cgroup) = (format!("{name}-{host}"), format!("/{name}-{host}"));
        Ok(Self { host, folder, namespace, cgroup, cpu: None, daemon: Mutex::new(None), docker })
    }

    /// Ends the engine with everything that runs there, as a shutdown of the host would.
    pub async fn stop(&self) -> anyhow::Result<()> {
        let daemon = self.daemon.lock().await.take();
        let mut daemon = daemon.context("the engine runs, started by this process")?;
        let id = daemon.id().context("the engine has ended by itself")?;
        let pid = Pid::from_raw(i32::try_from(id)?).context("no process has id 0")?;
        kill_process(pid, Signal::TERM)?;
        daemon.wait().await?;
        Ok(())
    }

    /// Starts it again.
    pub async fn start(&self) -> anyhow::Result<()> {
        let of = (self.host.as_str(), self.cpu);
        let started = daemon(&self.folder, &self.namespace, &self.cgroup, of)?;
        *self.daemon.lock().await = Some(started);
        answers(&self.folder).await.map(drop)
    }

    /// Limits its containers to `cpus` CPUs together.
    pub(super) fn hold(&self, cpus: f64) -> anyhow::Result<()> {
        const PERIOD: f64 = 100_000.0;
        let name = self.cgroup.trim_start_matches('/');
        let first = Path::new("/sys/fs/cgroup/cpu");
        let quota = (PERIOD * cpus).round();
        if first.is_dir() {
            let group = first.join(name);
            std::fs::create_dir_all(&group)?;
            return Ok(std::fs::write(group.join("cpu.cfs_quota_us"), quota.to_string())?);
        }
        let group = Path::new("/sys/fs/cgroup").join(name);
        std::fs::create_dir_all(&group)?;
        Ok(std::fs::write(group.join("cpu.max"), format!("{quota} {PERIOD}"))?)
    }

    /// The engine.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Its address, as in `DOCKER_HOST`.
    pub fn address(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    /// A program in this machine's network namespace.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/var/run/netns/{}", self.namespace));
        command.arg(program).kill_on_drop(true);
        command
    }

    /// Bytes received and sent over the machine's cable.
    pub async fn traffic(&self) -> anyhow::Result<(u64, u64)> {
        let enter = format!("--net=/var/run/netns/{}", self.namespace);
        let output =
            Command::new("nsenter").args([&enter, "cat", "/proc/net/dev"]).output().await?;
        let said = String::from_utf8(output.stdout)?;
        let line = said.lines().find_map(|line| line.trim().strip_prefix("eth0:"));
        let mut counts = line.context("there is a cable")?.split_whitespace().map(str::parse);
        let came = counts.next().context("bytes that came")??;
        Ok((came, counts.nth(7).context("bytes that went")??))
    }

    /// CPU time that its containers have used so far, in seconds.
    pub fn used(&self) -> anyhow::Result<f64> {
        let name = self.cgroup.trim_start_matches('/');
        let first = Path::new("/sys/fs/cgroup/cpuacct").join(name).join("cpuacct.usage");
        if first.exists() {
            let nanoseconds: u64 = std::fs::read_to_string(first)?.trim().parse()?;
            return Ok(Duration::from_nanos(nanoseconds).as_secs_f64());
        }
        let stat =
            std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(name).join("cpu.stat"))?;
        let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let microseconds: u64 = microseconds.context("a group has its use")?.parse()?;
        Ok(Duration::from_micros(microseconds).as_secs_f64())
    }

    /// Removes what it runs and ends it. Fails if the engine had ended by itself, but only after
    /// clearing up.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        let fell = match self.daemon.lock().await.as_mut() {
            Some(daemon) => daemon.try_wait()?,
            None => None,
        };
        // A failed test may have left it stopped: then nothing runs there.
        if self.daemon.lock().await.is_some() {
            if let Err(error) = self.empty().await {
                // An engine may panic when it leaves by force (moby/moby#39221): restart it.
                self.falls().await.context(error)?;
                self.start().await?;
                self.empty().await?;
            }
            self.stop().await?;
        }
        for folder in ["exec/netns", "data"] {
            unmount(&self.folder.join(folder)).await?;
        }
        remove_cgroups(self.cgroup.trim_start_matches('/'))?;
        let said = || said(&self.folder);
        fell.map_or(Ok(()), |status| anyhow::bail!("the engine had ended ({status}): {}", said()))
    }

    /// Makes it leave its Swarm, and removes its containers.
    async fn empty(&self) -> anyhow::Result<()> {
        let force = LeaveSwarmOptionsBuilder::default().force(true).build();
        // One that never joined cannot leave.
        drop(self.docker.leave_swarm(Some(force)).await);
        self.remove_containers().await
    }

    /// Waits for the end of an engine that no longer answers.
    async fn falls(&self) -> anyhow::Result<()> {
        let mut daemon = self.daemon.lock().await;
        let ended = daemon.as_mut().context("the engine runs")?.wait();
        tokio::time::timeout(Duration::from_secs(10), ended).await??;
        Ok(())
    }
}

/// The log of the engine that keeps everything in `folder`.
fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Waits until the engine that keeps everything in `folder` answers.
async fn answers(folder: &Path) -> anyhow::Result<Docker> {
    let socket = folder.join("docker.sock");
    let path = socket.to_str().context("a path is text")?;
    let answers = until("an engine of the Swarm answers", || async {
        let Ok(docker) = Docker::connect_with_unix(path, 60, API_DEFAULT_VERSION) else {
            return Ok(None);
        };
        Ok(docker.negotiate_version().await.ok())
    });
    answers.await.with_context(|| said(folder))
}

/// Starts an engine that shares nothing with the machine's but the control groups.
fn daemon(
    folder: &Path,
    namespace: &str,
    cgroup: &str,
    (host, cpu): (&str, Option<usize>),
) -> anyhow::Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"))?;
    // Not `ip netns exec`: that mounts another /sys, without the control groups.
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/var/run/netns/{namespace}"));
    if let Some(cpu) = cpu {
        command.args(["taskset", "--cpu-list", &cpu.to_string()]);
    }
    command.args(["unshare", "--uts", "sh", "-c", "hostname \"$1\"; shift; exec dockerd \"$@\""]);
    command.args(["sh", host]);
    for (option, name) in [
        ("--config-file", "daemon.json"),
        ("--data-root", "data"),
        ("--exec-root", "exec"),
        ("--pidfile", "pid"),
    ] {
        command.arg(option).arg(folder.join(name));
    }
    command.arg("--host").arg(format!("unix://{}", folder.join("docker.sock").display()));
    command.args(["--cgroup-parent", cgroup, "--storage-driver", storage(), "--mtu", "1400"]);
    command.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// The storage driver. It must not need a file system of its own; `fuse-overlayfs` is better than
/// `vfs`, which copies whole images.
fn storage() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    if folders.any(|folder| folder.join("fuse-overlayfs").exists())
        && Path::new("/dev/fuse").exists()
    {
        "fuse-overlayfs"
    } else {
        "vfs"
    }
}

/// Unmounts a folder and everything below it.
async fn unmount(folder: &Path) -> anyhow::Result<()> {
    let table = std::fs::read_to_string("/proc/self/mounts")?;
    let places = table.lines().filter_map(|line| line.split_whitespace().nth(1));
    let mut below: Vec<&str> =
        places.filter(|place| Path::new(place).starts_with(folder)).collect();
    below.sort_unstable();
    for place in below.into_iter().rev() {
        run(&["umount", "--lazy", place]).await?;
    }
    Ok(())
}

/// Removes the empty control groups that an engine leaves.
fn remove_cgroups(name: &str) -> anyhow::Result<()> {
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup")? {
        let group = hierarchy?.path().join(name);
        if group.is_dir() {
            remove_group(&group)?;
        }
    }
    Ok(())
}

fn remove_group(group: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(group)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_group(&path)?;
        }
    }
    Ok(std::fs::remove_dir(group)?)
}
