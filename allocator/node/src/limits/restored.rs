//! What a restore has done.

use std::fmt;

use paceline_runtime::HostCpu;

use super::record::{Observed, Original};

/// How a container's limits were restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Kernel and engine have their original values.
    Exactly,
    /// The kernel has its original values. The engine, which cannot return to "not set", keeps an
    /// equivalent value.
    Equivalently,
    /// The container does not exist any more.
    Gone,
}

/// A restore of one container, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The container's name.
    pub name: String,
    /// How its limits were restored.
    pub outcome: Restored,
    /// The limits before, those that were put back, and those that were read back; `None` if there was
    /// no container to read them from.
    pub values: Option<Values>,
}

/// The limits of one container at three times, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Before the restore.
    pub found: String,
    /// What its owner wants.
    pub wanted: String,
    /// After the restore.
    pub read: String,
}

impl Report {
    pub(super) fn new(original: &Original, outcome: Restored, values: Option<Values>) -> Self {
        Self { name: original.name.clone(), outcome, values }
    }
}

impl Values {
    pub(super) fn new(found: &Observed, wanted: &Original, read: &Observed) -> Self {
        let text =
            |one: &Observed| limits(one.quota.map(|it| it.to_string()), one.weight, one.host);
        let quota = wanted.cgroup.map(|quota| quota.to_string());
        let wanted = limits(quota, wanted.weight, wanted.host_config);
        Self { found: text(found), wanted, read: text(read) }
    }
}

/// The limits of one container in the kernel, and in the engine where it keeps any.
fn limits(quota: Option<String>, weight: Option<u64>, host: HostCpu) -> String {
    let weight = weight.map(|weight| format!("weight {weight}"));
    let kept = |name, value: i64| (value != 0).then(|| format!("{name}={value}"));
    let engine = [
        kept("NanoCpus", host.nano_cpus),
        kept("CpuQuota", host.cpu_quota),
        kept("CpuPeriod", host.cpu_period),
        kept("CpuShares", host.cpu_shares),
    ];
    let parts: Vec<String> = [quota, weight].into_iter().chain(engine).flatten().collect();
    if parts.is_empty() { "no limit".to_owned() } else { parts.join(", ") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Values { found, wanted, read }) = &self.values {
            write!(f, "found {found}; put back {wanted}; read back {read}: ")?;
        }
        self.outcome.fmt(f)
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exactly => "as it was",
            Self::Equivalently => "as it was (the engine keeps all CPUs in place of no limit)",
            Self::Gone => "the container is gone",
        })
    }
}
