//! The source of a container's limit and of its use of resources.

use paceline_cgroup::{Cgroup, Quota, Used};
use paceline_policy::JobId;
use paceline_runtime::{Container, Runtime, Stats};
use tracing::info;

use crate::observe::node::Machine;

#[derive(Debug)]
pub(super) enum Source {
    /// Its control group.
    Files(Cgroup),
    /// The container engine's statistics: the control group cannot be read from here.
    Engine(Option<Stats>),
}

impl Source {
    pub(super) fn new(container: &Container, machine: &Machine, job: &JobId) -> Self {
        match container.pid.map(|pid| Cgroup::for_container(&machine.proc, pid, &container.id)) {
            Some(Ok(cgroup)) => Self::Files(cgroup),
            Some(Err(error)) => {
                info!(%job, "cannot read its control group: {error}; using the engine's statistics");
                Self::Engine(None)
            }
            None => Self::Engine(None),
        }
    }

    /// Whether the limit is read from the kernel.
    pub(super) fn is_kernel(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// The limit in force in the kernel.
    pub(super) fn quota(&self) -> Option<Quota> {
        let Self::Files(cgroup) = self else { return None };
        cgroup.quota().ok()
    }

    /// The CPU weight in force in the kernel, on the engine's scale.
    pub(super) fn weight(&self) -> Option<u64> {
        let Self::Files(cgroup) = self else { return None };
        cgroup.weight().ok().map(|weight| cgroup.shares_of(weight))
    }

    /// A CPU weight on the engine's scale, from the kernel's.
    pub(super) fn shares_of(&self, weight: u64) -> Option<u64> {
        let Self::Files(cgroup) = self else { return None };
        Some(cgroup.shares_of(weight))
    }

    /// What container `id` has used; `quota` is the limit in force.
    pub(super) fn used(
        &mut self,
        runtime: &Runtime,
        id: &str,
        quota: Option<Quota>,
    ) -> Option<Used> {
        match self {
            Self::Files(cgroup) => cgroup.used_under(quota?).ok(),
            Self::Engine(stats) => {
                stats.get_or_insert_with(|| Stats::follow(runtime.clone(), id.to_owned())).latest()
            }
        }
    }
}
