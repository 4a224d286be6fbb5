//! A container as its engine describes it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use paceline_policy::Share;

/// The default period of kernel and engine, in microseconds.
pub const DEFAULT_PERIOD: i64 = 100_000;

/// A container, as far as the allocator needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// The engine's full id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its first process on the host; `None` if it is not running.
    pub pid: Option<u32>,
    /// When it was last started, as the engine writes it. A new value means a restart.
    pub started_at: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its addresses on the engine's networks.
    pub addresses: Vec<IpAddr>,
    /// Its published TCP ports: the port inside, and the address on the host.
    pub published: Vec<(u16, SocketAddr)>,
    /// The CPU limit that the engine keeps for it.
    pub host_config: HostCpu,
    /// The CPUs that it may run on, as the engine writes them; empty means all.
    pub cpuset_cpus: String,
    /// Paths inside it where writable volumes or folders of the machine are mounted. Their content
    /// survives the container.
    pub mounted: Vec<PathBuf>,
    /// Its network mode, as the engine writes it.
    pub network_mode: String,
    /// Whether it is running, and how it ended.
    pub state: State,
    /// What Kubernetes says of it; `None` if it is in no pod.
    pub pod: Option<Pod>,
}

/// The pod of a container on a Kubernetes node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The CPUs that the container requested: what its limit never goes below.
    pub request: f64,
    /// Why the container is watched, and its limit never changed.
    pub watched_only: Option<String>,
    /// Why the container is left alone.
    pub left_alone: Option<String>,
}

/// Whether a container is running, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether it is running, paused or not.
    pub running: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// When it last ended, in RFC 3339.
    pub finished_at: Option<String>,
    /// Its last exit code; 0 is success.
    pub exit_code: Option<i64>,
    /// Whether it was killed because memory ran out.
    pub out_of_memory: bool,
}

/// The CPU fields of a container's `HostConfig`. For the engine, 0 means "not set".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HostCpu {
    /// Billionths of a CPU.
    pub nano_cpus: i64,
    /// Microseconds of CPU time in a period; −1 is unlimited.
    pub cpu_quota: i64,
    /// The period, in microseconds.
    pub cpu_period: i64,
    /// The CPU weight.
    #[serde(default)]
    pub cpu_shares: i64,
}

impl HostCpu {
    /// The CPU weight, if one is set.
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
