//! A container as the engine describes it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{ContainerInspectResponse, MountPoint};
use bollard::query_parameters::{InspectContainerOptions, ListContainersOptionsBuilder};

use paceline_policy::Share;

use crate::labels::ENABLE;

/// The period that the kernel and the engine assume, in microseconds.
pub const DEFAULT_PERIOD: i64 = 100_000;

/// What the allocator needs to know of one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// The engine's full id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its first process on the host; `None` when it does not run.
    pub pid: Option<u32>,
    /// When it was last started, in the engine's words: a new one is a new life.
    pub started_at: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its addresses on the engine's networks.
    pub addresses: Vec<IpAddr>,
    /// Its published TCP ports: inside, and where on the host.
    pub published: Vec<(u16, SocketAddr)>,
    /// The CPU limit that the engine keeps for it.
    pub host_config: HostCpu,
    /// The memory limit that the engine keeps for it.
    pub host_memory: HostMemory,
    /// The CPUs that it may run on, in the engine's words; empty: all.
    pub cpuset_cpus: String,
    /// What outlives it: where folders of the machine and volumes are mounted that it may write to.
    pub mounted: Vec<PathBuf>,
    /// Its network's mode, in the engine's words.
    pub network_mode: String,
}

/// The CPU fields of a container's `HostConfig`. 0 is "not set" in the engine's own terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HostCpu {
    /// Billionths of a CPU.
    pub nano_cpus: i64,
    /// Microseconds of CPU time in a period; −1 is no limit.
    pub cpu_quota: i64,
    /// Microseconds.
    pub cpu_period: i64,
    /// The CPU weight.
    #[serde(default)]
    pub cpu_shares: i64,
}

/// The memory fields of a container's `HostConfig`, in bytes. 0 is "not set".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HostMemory {
    /// Memory.
    pub memory: i64,
    /// Memory and swap together; −1 is no limit.
    pub memory_swap: i64,
}

impl HostCpu {
    /// The CPU weight, where one was asked for.
    pub fn weight(self) -> Option<u64> {
        u64::try_from(self.cpu_shares).ok().filter(|weight| *weight > 0)
    }

    /// The same without the weight.
    #[must_use]
    pub fn caps(self) -> Self {
        Self { cpu_shares: 0, ..self }
    }

    /// The limit as a share of a node with `cpus` CPUs.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53")]
    pub fn share(self, cpus: f64) -> Share {
        let cores = if self.nano_cpus > 0 {
            self.nano_cpus as f64 / 1e9
        } else if self.cpu_quota > 0 {
            let period = if self.cpu_period > 0 { self.cpu_period } else { DEFAULT_PERIOD };
            self.cpu_quota as f64 / period as f64
        } else {
            return Share::ALL;
        };
        Share::nearest(cores / cpus)
    }
}

/// The ids of all running containers that opted in and have all of `labels` (`KEY=VALUE`).
pub async fn opted_in(docker: &Docker, labels: &[String]) -> Result<Vec<String>, EngineError> {
    let mut wanted = vec![format!("{ENABLE}=true")];
    wanted.extend_from_slice(labels);
    let filters = std::iter::once(("label".to_owned(), wanted)).collect();
    let options = ListContainersOptionsBuilder::default().filters(&filters).build();
    let listed = docker.list_containers(Some(options)).await?;
    Ok(listed.into_iter().filter_map(|container| container.id).collect())
}

/// Describes one container; `None` when there is none of that name or id.
pub async fn inspect(docker: &Docker, name: &str) -> Result<Option<Container>, EngineError> {
    match docker.inspect_container(name, None::<InspectContainerOptions>).await {
        Ok(response) => Ok(Some(Container::from(response))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the engine says that there is no such thing.
pub fn is_missing(error: &EngineError) -> bool {
    matches!(error, EngineError::DockerResponseServerError { status_code: 404, .. })
}

impl From<ContainerInspectResponse> for Container {
    fn from(response: ContainerInspectResponse) -> Self {
        let state = response.state.unwrap_or_default();
        let networks = response.network_settings.unwrap_or_default();
        let host = response.host_config.unwrap_or_default();
        let labels = response.config.and_then(|config| config.labels).unwrap_or_default();
        let name = response.name.unwrap_or_default();
        // Pid 0 is the engine's word for "not running", and pid 1 is never a container's.
        let pid = state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 1);
        Self {
            id: response.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            pid: pid.filter(|_| state.running == Some(true)),
            started_at: state.started_at.unwrap_or_default(),
            labels: labels.into_iter().collect(),
            addresses: networks
                .networks
                .unwrap_or_default()
                .into_values()
                .filter_map(|network| network.ip_address?.parse().ok())
                .collect(),
            published: networks
                .ports
                .unwrap_or_default()
                .into_iter()
                .flat_map(|(inside, bindings)| published(&inside, bindings.unwrap_or_default()))
                .collect(),
            host_config: HostCpu {
                nano_cpus: host.nano_cpus.unwrap_or(0),
                cpu_quota: host.cpu_quota.unwrap_or(0),
                cpu_period: host.cpu_period.unwrap_or(0),
                cpu_shares: host.cpu_shares.unwrap_or(0),
            },
            host_memory: HostMemory {
                memory: host.memory.unwrap_or(0),
                memory_swap: host.memory_swap.unwrap_or(0),
            },
            cpuset_cpus: host.cpuset_cpus.unwrap_or_default(),
            mounted: response.mounts.unwrap_or_default().into_iter().filter_map(lasting).collect(),
            network_mode: host.network_mode.unwrap_or_default(),
        }
    }
}

/// Where a mount is, if what is written there stays when the container goes.
fn lasting(mount: MountPoint) -> Option<PathBuf> {
    let stays = matches!(mount.typ.as_deref(), Some("bind" | "volume"));
    mount.destination.filter(|_| stays && mount.rw == Some(true)).map(PathBuf::from)
}

/// Where a port such as `7223/tcp` is published. A wildcard address is reached by loopback.
fn published(inside: &str, bindings: Vec<bollard::models::PortBinding>) -> Vec<(u16, SocketAddr)> {
    let Some(inside) = inside.strip_suffix("/tcp").and_then(|port| port.parse().ok()) else {
        return Vec::new();
    };
    let address = |binding: bollard::models::PortBinding| {
        let port = binding.host_port?.parse().ok()?;
        let ip: IpAddr = binding.host_ip.unwrap_or_default().parse().ok()?;
        let loopback: IpAddr = match ip {
            IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        Some((inside, SocketAddr::new(if ip.is_unspecified() { loopback } else { ip }, port)))
    };
    bindings.into_iter().filter_map(address).collect()
}
