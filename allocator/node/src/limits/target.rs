use std::path::PathBuf;

use paceline_cgroup::block_io::IoWeight;
use paceline_cgroup::{Cgroup, Instance, Quota, WeightScale};
use paceline_runtime::Container;

use super::limit_write::LimitWrite;
use super::record::Observed;

/// A container at the moment before a write.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) container: Container,
    /// `None` if it is not running, or its control group cannot be read.
    pub(super) cgroup: Option<Cgroup>,
    /// The machine's `/proc`.
    pub(super) proc: PathBuf,
    /// `None` if the kernel has no such weight.
    pub(super) io: Option<IoWeight>,
}

impl Target {
    pub(super) fn id(&self) -> &str {
        &self.container.id
    }

    pub(super) fn name(&self) -> String {
        self.container.name.clone()
    }

    /// The kernel's quota.
    pub(super) fn quota(&self) -> Option<Quota> {
        self.cgroup.as_ref()?.quota().ok()
    }

    /// The kernel's weight, on its own scale.
    pub(super) fn weight(&self) -> Option<u64> {
        self.cgroup.as_ref()?.weight().ok()
    }

    /// The weight of its block I/O.
    pub(super) fn io_weight(&self) -> Option<u64> {
        self.io.as_ref()?.get().ok()
    }

    /// Whether systemd manages its control group.
    pub(super) fn is_of_systemd(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::is_of_systemd)
    }

    /// The present life of its control group. A description that is used again may be of an earlier one.
    fn group(&self) -> Option<Instance> {
        self.cgroup.as_ref()?.instance(&self.proc).ok()
    }

    /// Everything that a write may change, as it is now in the kernel, and as the engine described it.
    pub(super) fn observe(&self) -> Observed {
        let host = self.container.host_config;
        Observed {
            host,
            quota: self.quota(),
            weight: self.weight(),
            io_weight: self.io_weight(),
            group: self.group(),
            scale: self.cgroup.as_ref().map_or(WeightScale::Weight, Cgroup::weight_scale),
        }
    }

    /// The kernel's value in text if it differs from the one that `write` has written. `Err` if it
    /// cannot be read.
    pub(super) fn other_than(&self, write: LimitWrite) -> Result<Option<String>, Unseen> {
        let (same, found) = match write {
            LimitWrite::NanoCpus(_) | LimitWrite::CpuQuota(_) | LimitWrite::File(_) => {
                let wanted = write.quota(self.container.host_config).ok_or(Unseen)?;
                let found = self.quota().ok_or(Unseen)?;
                (found.is_near(wanted), found.to_string())
            }
            // In version 2 the engine converts the weight, differently in each of its versions.
            LimitWrite::CpuShares(weight) => {
                let cgroup = self.cgroup.as_ref().filter(|cgroup| cgroup.version() == 1);
                let found = cgroup.ok_or(Unseen)?.weight().map_err(|_| Unseen)?;
                (u64::try_from(weight) == Ok(found), format!("weight {found}"))
            }
            LimitWrite::WeightFile(weight) => {
                let found = self.weight().ok_or(Unseen)?;
                (found == weight, format!("weight {found}"))
            }
        };
        Ok((!same).then_some(found))
    }
}

/// The kernel's value cannot be read.
#[derive(Debug)]
pub(super) struct Unseen;
