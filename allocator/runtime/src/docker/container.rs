//! Converts Docker's description of a container.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bollard::models::{ContainerInspectResponse, MountPoint, PortBinding};

use crate::{Container, HostCpu, State};

impl From<ContainerInspectResponse> for Container {
    fn from(response: ContainerInspectResponse) -> Self {
        let state = response.state.unwrap_or_default();
        let networks = response.network_settings.unwrap_or_default();
        let host = response.host_config.unwrap_or_default();
        let labels = response.config.and_then(|config| config.labels).unwrap_or_default();
        let name = response.name.unwrap_or_default();
        // For the engine, pid 0 means "not running"; pid 1 is never a container's.
        let pid = state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 1);
        let running = state.running == Some(true);
        Self {
            id: response.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            pid: pid.filter(|_| running),
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
            cpuset_cpus: host.cpuset_cpus.unwrap_or_default(),
            mounted: response.mounts.unwrap_or_default().into_iter().filter_map(lasting).collect(),
            network_mode: host.network_mode.unwrap_or_default(),
            state: State {
                running,
                paused: state.paused == Some(true),
                finished_at: state.finished_at,
                exit_code: state.exit_code,
                out_of_memory: state.oom_killed == Some(true),
            },
            pod: None,
        }
    }
}

/// A container as Docker describes it in JSON.
///
/// # Panics
/// If Docker would not describe a container so.
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::unwrap_used, reason = "a test fails by a panic")]
pub fn described(json: serde_json::Value) -> Container {
    serde_json::from_value::<ContainerInspectResponse>(json).unwrap().into()
}

/// The path of a mount, if its content survives the container.
fn lasting(mount: MountPoint) -> Option<PathBuf> {
    let stays = matches!(mount.typ.as_deref(), Some("bind" | "volume"));
    mount.destination.filter(|_| stays && mount.rw == Some(true)).map(PathBuf::from)
}

/// The addresses where a port such as `7223/tcp` is published. For a wildcard address, the loopback.
fn published(inside: &str, bindings: Vec<PortBinding>) -> Vec<(u16, SocketAddr)> {
    let Some(inside) = inside.strip_suffix("/tcp").and_then(|port| port.parse().ok()) else {
        return Vec::new();
    };
    let address = |binding: PortBinding| {
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
