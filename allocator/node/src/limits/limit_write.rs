use std::fmt;

use paceline_cgroup::Quota;
use paceline_runtime::{Change, DEFAULT_PERIOD, HostCpu};

/// One method of writing a limit, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitWrite {
    /// Through the engine, in billionths of a CPU.
    NanoCpus(i64),
    /// Through the engine, in microseconds for an unchanged period; −1 is unlimited.
    CpuQuota(i64),
    /// Through the engine, as a weight.
    CpuShares(i64),
    /// Directly into the control group's file.
    File(Quota),
    /// A CPU weight on the kernel's scale, directly into the control group's file.
    WeightFile(u64),
}

/// What writes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A new limit, with a weight of block I/O that the caller sets next. It needs a record on the disk.
    Limit {
        /// The weight of block I/O, if there is one.
        io: Option<u64>,
    },
    /// The original limits. They are in the memory, so a failed disk does not stop this.
    Restore,
}

impl LimitWrite {
    /// The request to the engine; `None` if this writes a file.
    pub(super) fn change(self) -> Option<Change> {
        match self {
            Self::NanoCpus(nano) => Some(Change::NanoCpus(nano)),
            Self::CpuQuota(quota) => Some(Change::CpuQuota(quota)),
            Self::CpuShares(weight) => Some(Change::CpuShares(weight)),
            Self::File(_) | Self::WeightFile(_) => None,
        }
    }

    /// What the engine keeps after this write.
    pub(super) fn after(self, host: HostCpu) -> HostCpu {
        match self {
            Self::NanoCpus(nano_cpus) => HostCpu { nano_cpus, ..host },
            Self::CpuQuota(cpu_quota) => HostCpu { cpu_quota, ..host },
            Self::CpuShares(cpu_shares) => HostCpu { cpu_shares, ..host },
            Self::File(_) | Self::WeightFile(_) => host,
        }
    }

    /// The kernel's quota after this write, if it writes a quota.
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
            Self::CpuShares(_) | Self::WeightFile(_) => None,
        }
    }
}

impl fmt::Display for LimitWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NanoCpus(nano) => write!(f, "NanoCpus={nano}"),
            Self::CpuQuota(quota) => write!(f, "CpuQuota={quota}"),
            Self::CpuShares(weight) => write!(f, "CpuShares={weight}"),
            Self::File(Quota { quota: Some(quota), period }) => {
                write!(f, "cgroup file {quota}/{period}")
            }
            Self::File(Quota { quota: None, .. }) => f.write_str("cgroup file without a limit"),
            Self::WeightFile(weight) => write!(f, "cgroup file with weight {weight}"),
        }
    }
}
