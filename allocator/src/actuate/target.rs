use super::memory;
use super::originals::Original;
use super::way::Way;
use crate::observe::cgroup::block_io::IoWeight;
use crate::observe::cgroup::{Cgroup, MemoryLimit, Quota};
use crate::observe::container::Container;

/// A container that is about to be written to, as it is now.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) container: Container,
    /// `None` when it does not run, or cannot be seen from here.
    pub(super) cgroup: Option<Cgroup>,
    /// `None` where the kernel has no such thing.
    pub(super) io: Option<IoWeight>,
}

impl Target {
    pub(super) fn id(&self) -> &str {
        &self.container.id
    }

    pub(super) fn name(&self) -> String {
        self.container.name.clone()
    }

    /// The quota that the kernel has.
    pub(super) fn quota(&self) -> Option<Quota> {
        self.cgroup.as_ref()?.quota().ok()
    }

    /// The weight that the kernel has, in its own measure.
    pub(super) fn weight(&self) -> Option<u64> {
        self.cgroup.as_ref()?.weight().ok()
    }

    /// The memory limit that the kernel has.
    pub(super) fn memory(&self) -> Option<MemoryLimit> {
        self.cgroup.as_ref()?.memory_limit().ok()
    }

    /// The weight of its block I/O.
    pub(super) fn io_weight(&self) -> Option<u64> {
        self.io.as_ref()?.get().ok()
    }

    /// All that a write may change.
    pub(super) fn original(&self) -> Original {
        let mut original = Original::new(&self.container, self.quota(), self.weight());
        original.io_weight = self.io_weight();
        original
    }

    /// What the kernel has of that which `way` writes, where it has something else than was
    /// written. `Err` when that cannot be seen from here.
    pub(super) fn other_than(&self, way: Way) -> Result<Option<String>, Unseen> {
        let (same, found) = match way {
            Way::NanoCpus(_) | Way::CpuQuota(_) | Way::File(_) => {
                let wanted = way.quota(self.container.host_config).ok_or(Unseen)?;
                let found = self.quota().ok_or(Unseen)?;
                (found.is_near(wanted), found.to_string())
            }
            // In version 2 the measure is the engine's affair, and differs between its versions.
            Way::CpuShares(weight) => {
                let cgroup = self.cgroup.as_ref().filter(|cgroup| cgroup.version() == 1);
                let found = cgroup.ok_or(Unseen)?.weight().map_err(|_| Unseen)?;
                (u64::try_from(weight) == Ok(found), format!("weight {found}"))
            }
            Way::WeightFile(weight) => {
                let found = self.weight().ok_or(Unseen)?;
                (found == weight, format!("weight {found}"))
            }
            Way::Memory(wanted) => {
                let found = self.memory().ok_or(Unseen)?.memory;
                (found == memory::in_force(wanted), format!("{found:?} bytes"))
            }
            Way::MemoryFile(wanted) => {
                let found = self.memory().ok_or(Unseen)?.memory;
                (found == wanted.memory, format!("{found:?} bytes"))
            }
        };
        Ok((!same).then_some(found))
    }
}

/// What the kernel has cannot be seen from here.
#[derive(Debug)]
pub(super) struct Unseen;
