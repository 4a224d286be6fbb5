//! The limits that a container's owner has set. They bound what a policy may choose.

use std::time::UNIX_EPOCH;

use paceline_api::clock::unix_seconds;
use paceline_cgroup::{Quota, ROUNDING};
use paceline_policy::limiter::DEFAULT_WEIGHT;
use paceline_policy::{Event, Share};
use paceline_runtime::{Container, HostCpu};
use tracing::info;

use super::WatchedContainer;
use super::source::Source;
use crate::limits::ByOwner;
use crate::observe::node::Machine;

/// What the owner has set, apart from labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owned {
    /// The cap that the engine keeps.
    cap: HostCpu,
    /// The kernel's quota, which may be lower: another program can set it without the engine.
    quota: Option<Quota>,
    /// On the engine's scale.
    pub(super) weight: u64,
}

impl Owned {
    /// The limits of a container to which nothing was written yet.
    pub(super) fn new(container: &Container, source: &Source) -> Self {
        let cap = container.host_config;
        // Whether the kernel's quota is the owner's is known once `owned_by` is called.
        Self {
            cap,
            quota: None,
            weight: source.weight().or(cap.weight()).unwrap_or(DEFAULT_WEIGHT),
        }
    }

    /// The lower cap as a share of the machine, if there is one.
    fn share(self, machine: &Machine) -> Option<Share> {
        let engines = self.cap.share(machine.cpus);
        let kernels = self.quota.map_or(Share::ALL, |quota| quota.share(machine.cpus));
        // An engine rounds what it writes to the kernel.
        let is_lower = (engines.get() - kernels.get()) * machine.cpus > ROUNDING;
        Some(if is_lower { kernels } else { engines }).filter(|share| !share.is_all())
    }
}

impl WatchedContainer {
    /// The fewest CPUs that it is given: by the label, and in a pod never less than its request.
    pub(in crate::controller) fn floor(&self) -> Option<f64> {
        let request = self.container.pod.as_ref().map(|pod| pod.request);
        let request = request.filter(|request| *request > 0.0);
        match (self.labels.min_cpus, request) {
            (Some(label), Some(request)) => Some(label.max(request)),
            (label, request) => label.or(request),
        }
    }

    /// The largest share that the owner allows: by the label, or else by the container's own cap. In a
    /// pod both bound it, because a quota counts on the cap, and the request comes before the label.
    pub(in crate::controller) fn ceiling(&self, machine: &Machine) -> Option<Share> {
        let share = |cpus: f64| Share::nearest(cpus / machine.cpus);
        let (label, own) = (self.labels.max_cpus, self.owned.share(machine));
        let Some(pod) = &self.container.pod else { return label.map(share).or(own) };
        let label = label.map(|cpus| share(cpus.max(pod.request)));
        match (label, own) {
            (Some(label), Some(own)) if own.get() < label.get() => Some(own),
            (label, own) => label.or(own),
        }
    }

    /// Why its pod does not allow this share: it is below the request, or above the limit.
    pub(in crate::controller) fn beyond_its_pod(
        &self,
        share: Share,
        machine: &Machine,
    ) -> Option<String> {
        /// Shares that differ by less are the same: limits are whole microseconds.
        const TOLERANCE: f64 = 1e-4;
        let pod = self.container.pod.as_ref()?;
        let cpus = share.get() * machine.cpus;
        if share.get() + TOLERANCE < pod.request / machine.cpus {
            return Some(format!("{cpus:.2} CPUs are below the request of {} CPUs", pod.request));
        }
        let own = self.owned.share(machine).filter(|own| share.get() > own.get() + TOLERANCE)?;
        let limit = own.get() * machine.cpus;
        Some(format!("{cpus:.2} CPUs are above the container's own limit of {limit:.2} CPUs"))
    }

    /// Takes in the limits that its owner has set. What was written to it is not its owner's, so those
    /// before the first write count: what the engine described, and what the kernel has. Returns an event if
    /// they allow something else now.
    pub(in crate::controller) fn owned_by(
        &mut self,
        described: HostCpu,
        by_owner: &ByOwner,
        machine: &Machine,
    ) -> Option<Event> {
        let (ceiling, before) = (self.ceiling(machine), (self.owned.cap, self.owned.quota));
        let original = match by_owner {
            ByOwner::Recorded(original) => Some(original),
            ByOwner::InForce | ByOwner::Unknown => None,
        };
        self.owned.cap = original.map_or(described, |original| original.host_config);
        self.owned.quota = match by_owner {
            ByOwner::Recorded(original) => original.cgroup,
            ByOwner::InForce => self.use_of.quota(),
            ByOwner::Unknown => None,
        };
        let weight = original.and_then(|original| self.use_of.shares_of(original.weight?));
        self.owned.weight = weight.unwrap_or(self.owned.weight);
        let own = self.owned.share(machine);
        if let Some((own, most)) = own.zip(self.labels.max_cpus)
            && (!self.said_ceiling || before != (self.owned.cap, self.owned.quota))
            && self.container.pod.is_none()
            && most > own.get() * machine.cpus
        {
            let cpus = own.get() * machine.cpus;
            info!(
                job = %self.job,
                "the label paceline.max-cpus={most} raises the container's own limit of {cpus:.2} CPUs"
            );
        }
        self.said_ceiling = true;
        let changed = self.ceiling(machine) != ceiling;
        changed.then(|| Event::Bounded(self.job.clone(), self.ceiling(machine)))
    }

    /// The CPU weight that its owner gave it, on the engine's scale.
    pub(in crate::controller) fn own_weight(&self) -> u64 {
        self.owned.weight
    }

    /// How long the container has been running, in seconds.
    pub(super) fn age(&self) -> Option<f64> {
        let started = humantime::parse_rfc3339(&self.container.started_at).ok()?;
        let started = started.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
        Some((unix_seconds() - started).max(0.0))
    }
}
