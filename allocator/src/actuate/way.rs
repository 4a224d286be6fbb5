use std::fmt;

use bollard::models::ContainerUpdateBody;

use crate::observe::cgroup::{MemoryLimit, Quota};
use crate::observe::container::{DEFAULT_PERIOD, HostCpu, HostMemory};

/// One way to write a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the engine, in billionths of a CPU.
    NanoCpus(i64),
    /// By the engine, in microseconds of a period that stays; −1 is no limit.
    CpuQuota(i64),
    /// By the engine, as a weight.
    CpuShares(i64),
    /// By the engine, in bytes; it takes both fields together or none.
    Memory(HostMemory),
    /// Past the engine, into the control group's own file.
    File(Quota),
    /// The same, for a CPU weight in the kernel's measure.
    WeightFile(u64),
    /// The same, for memory.
    MemoryFile(MemoryLimit),
}

impl Way {
    /// The engine's request; `None` when this way goes past the engine.
    pub(super) fn request(self) -> Option<ContainerUpdateBody> {
        let empty = ContainerUpdateBody::default();
        match self {
            Self::NanoCpus(nano) => Some(ContainerUpdateBody { nano_cpus: Some(nano), ..empty }),
            Self::CpuQuota(quota) => Some(ContainerUpdateBody { cpu_quota: Some(quota), ..empty }),
            Self::CpuShares(weight) => {
                Some(ContainerUpdateBody { cpu_shares: Some(weight), ..empty })
            }
            Self::Memory(HostMemory { memory, memory_swap }) => Some(ContainerUpdateBody {
                memory: Some(memory),
                memory_swap: Some(memory_swap),
                ..empty
            }),
            Self::File(_) | Self::WeightFile(_) | Self::MemoryFile(_) => None,
        }
    }

    /// What the engine keeps once it has taken this way.
    pub(super) fn after(self, host: HostCpu) -> HostCpu {
        match self {
            Self::NanoCpus(nano_cpus) => HostCpu { nano_cpus, ..host },
            Self::CpuQuota(cpu_quota) => HostCpu { cpu_quota, ..host },
            Self::CpuShares(cpu_shares) => HostCpu { cpu_shares, ..host },
            Self::Memory(_) | Self::File(_) | Self::WeightFile(_) | Self::MemoryFile(_) => host,
        }
    }

    /// The quota that the kernel has once this way is taken, if it is one to a quota.
    pub(super) fn quota(self, host: HostCpu) -> Option<Quota> {
        let period = if host.cpu_period > 0 { host.cpu_period } else { DEFAULT_PERIOD };
        match self {
            Self::NanoCpus(nano) => Some(Quota {
                quota: u64::try_from(nano / (1_000_000_000 / DEFAULT_PERIOD)).ok(),
                period: DEFAULT_PERIOD.unsigned_abs(),
            }),
            Self::CpuQuota(quota) => {
                Some(Quota { quota: u64::try_from(quota).ok(), period: period.unsigned_abs() })
            }
            Self::File(quota) => Some(quota),
            Self::CpuShares(_) | Self::Memory(_) | Self::WeightFile(_) | Self::MemoryFile(_) => {
                None
            }
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NanoCpus(nano) => write!(f, "NanoCpus={nano}"),
            Self::CpuQuota(quota) => write!(f, "CpuQuota={quota}"),
            Self::CpuShares(weight) => write!(f, "CpuShares={weight}"),
            Self::Memory(HostMemory { memory, memory_swap }) => {
                write!(f, "Memory={memory}, MemorySwap={memory_swap}")
            }
            Self::File(Quota { quota: Some(quota), period }) => {
                write!(f, "cgroup file {quota}/{period}")
            }
            Self::File(Quota { quota: None, .. }) => f.write_str("cgroup file without a limit"),
            Self::WeightFile(weight) => write!(f, "cgroup file with weight {weight}"),
            Self::MemoryFile(MemoryLimit { memory: Some(bytes), .. }) => {
                write!(f, "cgroup file with {bytes} bytes of memory")
            }
            Self::MemoryFile(MemoryLimit { memory: None, .. }) => {
                f.write_str("cgroup file without a memory limit")
            }
        }
    }
}
