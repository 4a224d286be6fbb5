//! A Swarm of a test's own on one machine: engines, each in namespaces of its own for the network and
//! the host's name, which reach one another over a bridge and nothing else.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use bollard::models::{SwarmInitRequest, SwarmJoinRequest};
use bollard::query_parameters::{
    LeaveSwarmOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::wait::until;

/// The first three numbers of the machines' addresses, which mean nothing outside their namespaces.
const NETWORK: &str = "10.77.0";
/// Where a Swarm's managers listen.
const PORT: u16 = 2377;

/// A Swarm whose first engine manages it.
#[derive(Debug)]
pub struct PrivateSwarm {
    /// What the names of all its namespaces and control groups begin with.
    name: String,
    namespaces: Vec<String>,
    engines: Vec<SwarmEngine>,
}

/// One of its machines.
#[derive(Debug)]
pub struct SwarmEngine {
    /// Its host's name.
    pub host: String,
    folder: PathBuf,
    namespace: String,
    cgroup: String,
    daemon: Child,
    docker: Docker,
}

impl PrivateSwarm {
    /// Whether this machine has what a Swarm is made by.
    pub fn is_possible() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        ["dockerd", "ip", "nsenter", "unshare"].into_iter().all(is_there)
    }

    /// Starts a manager and so many workers, which keep everything below `folder`.
    pub async fn start(folder: &Path, workers: usize) -> anyhow::Result<Self> {
        Self::held(folder, workers, None).await
    }

    /// The same, where each machine's jobs have so many of this machine's CPUs together.
    pub async fn held(folder: &Path, workers: usize, cpus: Option<f64>) -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pl{}-{number}", std::process::id());
        let mut swarm = Self { name, namespaces: Vec::new(), engines: Vec::new() };
        match swarm.build(folder, workers, cpus).await {
            Ok(()) => Ok(swarm),
            Err(error) => {
                swarm.clear().await?;
                Err(error)
            }
        }
    }

    /// Its machines, the manager first.
    pub fn engines(&self) -> &[SwarmEngine] {
        &self.engines
    }

    /// The one that manages it.
    pub fn manager(&self) -> anyhow::Result<&SwarmEngine> {
        self.engines.first().context("there is a manager")
    }

    async fn build(
        &mut self,
        folder: &Path,
        workers: usize,
        cpus: Option<f64>,
    ) -> anyhow::Result<()> {
        let bridge = self.bridge();
        self.add(&bridge).await?;
        within(&bridge, &["ip", "link", "add", "br0", "type", "bridge"]).await?;
        within(&bridge, &["ip", "link", "set", "br0", "up"]).await?;
        for number in 0..=workers {
            let host = if number == 0 { "m".to_owned() } else { format!("w{number}") };
            let address = format!("{NETWORK}.{}", 10 + number);
            self.wire(&host, &address).await?;
            let engine = SwarmEngine::start(folder.join(&host), &self.name, host).await?;
            if let Some(cpus) = cpus {
                hold(&engine.cgroup, cpus)?;
            }
            self.engines.push(engine);
        }
        let manager = format!("{NETWORK}.10");
        let docker = self.manager()?.docker().clone();
        let init = SwarmInitRequest {
            listen_addr: Some(format!("{manager}:{PORT}")),
            advertise_addr: Some(manager.clone()),
            ..SwarmInitRequest::default()
        };
        docker.init_swarm(init).await?;
        let tokens = docker.inspect_swarm().await?.join_tokens;
        let token = tokens.and_then(|tokens| tokens.worker).context("a Swarm has tokens")?;
        for (number, worker) in self.engines.iter().enumerate().skip(1) {
            let own = format!("{NETWORK}.{}", 10 + number);
            let join = SwarmJoinRequest {
                listen_addr: Some(format!("{own}:{PORT}")),
                advertise_addr: Some(own),
                remote_addrs: Some(vec![format!("{manager}:{PORT}")]),
                join_token: Some(token.clone()),
                ..SwarmJoinRequest::default()
            };
            worker.docker.join_swarm(join).await?;
        }
        Ok(())
    }

    fn bridge(&self) -> String {
        format!("{}-br", self.name)
    }

    async fn add(&mut self, namespace: &str) -> anyhow::Result<()> {
        run(&["ip", "netns", "add", namespace]).await?;
        self.namespaces.push(namespace.to_owned());
        Ok(())
    }

    /// Makes a machine's namespace, and a cable from there to the bridge.
    async fn wire(&mut self, host: &str, address: &str) -> anyhow::Result<()> {
        let (bridge, own) = (self.bridge(), format!("{}-{host}", self.name));
        let cable = format!("to-{host}");
        self.add(&own).await?;
        let add = ["ip", "link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns"];
        within(&bridge, &[&add[..], &[own.as_str()]].concat()).await?;
        within(&bridge, &["ip", "link", "set", &cable, "master", "br0", "up"]).await?;
        within(&own, &["ip", "link", "set", "lo", "up"]).await?;
        let address = format!("{address}/24");
        within(&own, &["ip", "address", "add", &address, "dev", "eth0"]).await?;
        within(&own, &["ip", "link", "set", "eth0", "up"]).await
    }

    /// Ends all of it, and leaves nothing behind.
    pub async fn clear(self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        // Workers first: the last manager leaves by force.
        for engine in self.engines.into_iter().rev() {
            let host = engine.host.clone();
            let cleared = engine.clear().await.with_context(|| format!("machine {host}"));
            outcome = outcome.and(cleared);
        }
        for namespace in &self.namespaces {
            outcome = outcome.and(run(&["ip", "netns", "delete", namespace]).await);
        }
        outcome
    }
}

impl SwarmEngine {
    async fn start(folder: PathBuf, name: &str, host: String) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("daemon.json"), "{}")?;
        let (namespace, cgroup) = (format!("{name}-{host}"), format!("/{name}-{host}"));
        let daemon = daemon(&folder, &namespace, &cgroup, &host)?;
        let socket = folder.join("docker.sock");
        let path = socket.to_str().context("a path is text")?;
        let answers = until("an engine of the Swarm answers", || async {
            let Ok(docker) = Docker::connect_with_unix(path, 60, API_DEFAULT_VERSION) else {
                return Ok(None);
            };
            Ok(docker.negotiate_version().await.ok())
        });
        let said = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let docker = answers.await.with_context(said)?;
        Ok(Self { host, folder, namespace, cgroup, daemon, docker })
    }

    /// The engine.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Its address, as in `DOCKER_HOST`.
    pub fn address(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    /// A program that is run on this machine, as far as its network and name go.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/var/run/netns/{}", self.namespace));
        command.arg(program).kill_on_drop(true);
        command
    }

    /// Bytes that have come in and gone out over the machine's cable.
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
            return Ok(std::time::Duration::from_nanos(nanoseconds).as_secs_f64());
        }
        let stat =
            std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(name).join("cpu.stat"))?;
        let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let microseconds: u64 = microseconds.context("a group has its use")?.parse()?;
        Ok(std::time::Duration::from_micros(microseconds).as_secs_f64())
    }

    async fn clear(mut self) -> anyhow::Result<()> {
        let force = LeaveSwarmOptionsBuilder::default().force(true).build();
        // One that never joined cannot leave.
        drop(self.docker.leave_swarm(Some(force)).await);
        let all = ListContainersOptionsBuilder::default().all(true).build();
        for container in self.docker.list_containers(Some(all)).await? {
            let id = container.id.unwrap_or_default();
            let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            // The engine may be removing it itself.
            drop(self.docker.remove_container(&id, Some(force)).await);
        }
        let id = self.daemon.id().context("the engine has ended by itself")?;
        let pid = Pid::from_raw(i32::try_from(id)?).context("no process has id 0")?;
        kill_process(pid, Signal::TERM)?;
        self.daemon.wait().await?;
        for folder in ["exec/netns", "data"] {
            unmount(&self.folder.join(folder)).await?;
        }
        remove_cgroups(self.cgroup.trim_start_matches('/'))
    }
}

/// An engine with everything of its own, and nothing of the machine's but its control groups.
fn daemon(folder: &Path, namespace: &str, cgroup: &str, host: &str) -> anyhow::Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"))?;
    // Not `ip netns exec`: that mounts another /sys, without the control groups.
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/var/run/netns/{namespace}"));
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

/// What an engine keeps its images by: any does that needs no file system of its own, and one that
/// does not copy whole images is better.
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

/// Lets the containers below a control group have so many CPUs together.
fn hold(cgroup: &str, cpus: f64) -> anyhow::Result<()> {
    const PERIOD: f64 = 100_000.0;
    let name = cgroup.trim_start_matches('/');
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

async fn within(namespace: &str, words: &[&str]) -> anyhow::Result<()> {
    let enter = format!("--net=/var/run/netns/{namespace}");
    run(&[&["nsenter", &enter], words].concat()).await
}

async fn run(words: &[&str]) -> anyhow::Result<()> {
    let (program, words_left) = words.split_first().context("a command has words")?;
    let output = Command::new(program).args(words_left).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{words:?}: {said}");
    Ok(())
}

/// Unmounts what is mounted below a folder, and the folder itself.
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
