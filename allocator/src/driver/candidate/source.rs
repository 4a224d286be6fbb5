//! Where a container's limit and its use of resources are read.

use bollard::Docker;
use paceline_policy::JobId;
use tracing::info;

use crate::observe::cgroup::{Cgroup, Quota, Used};
use crate::observe::container::Container;
use crate::observe::node::Machine;
use crate::observe::stats::Stats;

#[derive(Debug)]
pub(super) enum Source {
    Files(Cgroup),
    /// The control group cannot be seen from here.
    Engine(Option<Stats>),
}

impl Source {
    pub(super) fn of(container: &Container, machine: &Machine, job: &JobId) -> Self {
        match container.pid.map(|pid| Cgroup::of(&machine.proc, pid)) {
            Some(Ok(cgroup)) => Self::Files(cgroup),
            Some(Err(error)) => {
                info!(%job, "its use is read from the engine's statistics: {error}");
                Self::Engine(None)
            }
            None => Self::Engine(None),
        }
    }

    /// Whether the kernel itself says what is in force.
    pub(super) fn is_kernel(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// The limit that the kernel has.
    pub(super) fn quota(&self) -> Option<Quota> {
        let Self::Files(cgroup) = self else { return None };
        cgroup.quota().ok()
    }

    /// What container `id` has used, where the kernel has this limit for it.
    pub(super) fn used(&mut self, docker: &Docker, id: &str, quota: Option<Quota>) -> Option<Used> {
        match self {
            Self::Files(cgroup) => cgroup.used_under(quota?).ok(),
            Self::Engine(stats) => {
                stats.get_or_insert_with(|| Stats::follow(docker.clone(), id.to_owned())).latest()
            }
        }
    }
}
