//! A private Swarm on one machine. Each engine has namespaces of its own for the network and the
//! host name; they reach one another over a bridge and nothing else.

mod engine;
mod shared;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use bollard::models::{SwarmInitRequest, SwarmJoinRequest};
use tokio::process::Command;

pub use engine::SwarmEngine;
pub use shared::SwarmAddress;

/// The network of the machines' addresses, which exists only inside their namespaces.
const NETWORK: &str = "10.77.0";
/// Where a Swarm's managers listen.
const PORT: u16 = 2377;

/// A Swarm whose first engine manages it.
#[derive(Debug)]
pub struct PrivateSwarm {
    /// The prefix of the names of all its namespaces and control groups.
    name: String,
    /// Where its engines keep everything, each below its host's name.
    folder: PathBuf,
    /// The namespaces that it made and removes again.
    namespaces: Vec<String>,
    engines: Vec<SwarmEngine>,
}

impl PrivateSwarm {
    /// Whether this machine has the programs to start a Swarm.
    pub fn is_possible() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        ["dockerd", "ip", "nsenter", "taskset", "unshare"].into_iter().all(is_there)
    }

    /// Starts a manager and `workers` workers, which keep everything below `folder`.
    pub async fn start(folder: &Path, workers: usize) -> anyhow::Result<Self> {
        Self::held(folder, workers, None).await
    }

    /// The same, with the jobs of each machine limited to `cpus` CPUs together. An engine counts whole
    /// CPUs: with one or less it has one.
    pub async fn held(folder: &Path, workers: usize, cpus: Option<f64>) -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pl{}-{number}", std::process::id());
        let folder = folder.to_owned();
        let mut swarm = Self { name, folder, namespaces: Vec::new(), engines: Vec::new() };
        match swarm.build(workers, cpus).await {
            Ok(()) => Ok(swarm),
            Err(error) => {
                // The first error says more than one from clearing up.
                drop(swarm.clear().await);
                Err(error)
            }
        }
    }

    /// Its machines, the manager first.
    pub fn engines(&self) -> &[SwarmEngine] {
        &self.engines
    }

    /// Where its engines keep everything, each below its host's name.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The one that manages it.
    pub fn manager(&self) -> anyhow::Result<&SwarmEngine> {
        self.engines.first().context("there is a manager")
    }

    async fn build(&mut self, workers: usize, cpus: Option<f64>) -> anyhow::Result<()> {
        let bridge = self.bridge();
        self.add(&bridge).await?;
        within(&bridge, &["ip", "link", "add", "br0", "type", "bridge"]).await?;
        within(&bridge, &["ip", "link", "set", "br0", "up"]).await?;
        let here = std::thread::available_parallelism().map_or(1, usize::from);
        for number in 0..=workers {
            let host = if number == 0 { "m".to_owned() } else { format!("w{number}") };
            let address = format!("{NETWORK}.{}", 10 + number);
            self.wire(&host, &address).await?;
            // An engine limited to a CPU or less is bound to one, so that it does not count all.
            let cpu = cpus.is_some_and(|cpus| cpus <= 1.0).then_some(number % here);
            let engine = SwarmEngine::new(self.folder.join(&host), &self.name, host, cpu).await?;
            if let Some(cpus) = cpus {
                engine.hold(cpus)?;
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
            worker.docker().join_swarm(join).await?;
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

    /// Makes a machine's namespace, and a virtual cable from there to the bridge.
    async fn wire(&mut self, host: &str, address: &str) -> anyhow::Result<()> {
        let (bridge, own) = (self.bridge(), format!("{}-{host}", self.name));
        let cable = cable(host);
        self.add(&own).await?;
        let add = ["ip", "link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns"];
        within(&bridge, &[&add[..], &[own.as_str()]].concat()).await?;
        within(&bridge, &["ip", "link", "set", &cable, "master", "br0", "up"]).await?;
        within(&own, &["ip", "link", "set", "lo", "up"]).await?;
        let address = format!("{address}/24");
        within(&own, &["ip", "address", "add", &address, "dev", "eth0"]).await?;
        within(&own, &["ip", "link", "set", "eth0", "up"]).await
    }

    /// Disconnects a machine from the network.
    pub async fn cut_off(&self, host: &str) -> anyhow::Result<()> {
        within(&self.bridge(), &["ip", "link", "set", &cable(host), "down"]).await
    }

    /// Connects it again.
    pub async fn reconnect(&self, host: &str) -> anyhow::Result<()> {
        within(&self.bridge(), &["ip", "link", "set", &cable(host), "up"]).await
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

/// The name of a machine's cable at the bridge.
fn cable(host: &str) -> String {
    format!("to-{host}")
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
