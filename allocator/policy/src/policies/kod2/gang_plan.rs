//! A distributed job as the policies see it, and the orders of jobs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::cluster::GangFrame;
use crate::cluster::gangs::{Gang, State, Weight};
use crate::unit::{JobId, saturate};

use super::TaskCounts;
use super::capacity::{Amount, EPSILON, FreeCapacity, NodeIndex, Nodes};

/// A waiting or running job.
#[derive(Debug)]
pub(in crate::policies) struct GangPlan<'f> {
    pub(in crate::policies) spec: &'f Gang,
    /// When it was submitted, or first seen.
    pub(in crate::policies) submitted: f64,
    /// ω′ (K1).
    pub(in crate::policies) raw: f64,
    /// The need of one parameter server.
    pub(in crate::policies) server: Amount,
    /// The need of one worker.
    pub(in crate::policies) worker: Amount,
    /// Its tasks on listed nodes; empty unless it runs.
    pub(in crate::policies) placement: BTreeMap<NodeIndex, NodeTasks>,
    /// Its workers on unlisted nodes: they count, but cannot be removed.
    pub(in crate::policies) unlisted: u32,
}

/// A job's tasks on one node.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::policies) struct NodeTasks {
    pub(in crate::policies) servers: u32,
    pub(in crate::policies) workers: u32,
}

impl<'f> GangPlan<'f> {
    fn new(gang: &'f Gang, submitted: f64, nodes: &Nodes<'_>) -> Self {
        let worker = Amount::known(gang.worker.cpu, gang.worker.memory);
        let mut plan = Self {
            spec: gang,
            submitted,
            raw: raw(gang.worker.min, worker, nodes.largest()),
            server: Amount::known(gang.ps.cpu, gang.ps.memory),
            worker,
            placement: BTreeMap::new(),
            unlisted: 0,
        };
        if gang.state == State::Running {
            for (name, count) in &gang.placement.ps {
                if let Some(at) = nodes.find(name) {
                    plan.placement.entry(at).or_default().servers = *count;
                }
            }
            for (name, count) in &gang.placement.workers {
                match nodes.find(name) {
                    Some(at) => plan.placement.entry(at).or_default().workers = *count,
                    None => plan.unlisted = plan.unlisted.saturating_add(*count),
                }
            }
        }
        plan
    }

    pub(in crate::policies) fn id(&self) -> &'f JobId {
        &self.spec.id
    }

    /// The tasks that it needs to start.
    pub(in crate::policies) fn needs(&self) -> TaskCounts {
        TaskCounts { servers: self.spec.ps.count, workers: self.spec.worker.min }
    }

    /// The capacity that those tasks need.
    pub(super) fn least_demand(&self) -> Amount {
        self.server.times(self.spec.ps.count).plus(self.worker.times(self.spec.worker.min))
    }

    /// The number of its workers.
    pub(super) fn workers(&self) -> u32 {
        let placed = self.placement.values().map(|tasks| tasks.workers);
        placed.fold(self.unlisted, u32::saturating_add)
    }

    /// The number of workers beyond its minimum.
    pub(super) fn removable_workers(&self) -> u32 {
        self.workers().saturating_sub(self.spec.worker.min)
    }

    /// The largest number of workers that it can use.
    pub(super) fn max_workers(&self) -> u32 {
        self.spec.worker.max.unwrap_or(self.spec.worker.min)
    }

    /// ω′ and ω. ω is 1 for large ω′, so jobs are not ordered by it (Eq. 1, K3).
    fn weight(&self) -> Weight {
        Weight { raw: self.raw, weight: 1.0 / (1.0 + (-self.raw).exp()) }
    }

    /// The larger ω′ first, then the earlier submission, then the id.
    pub(super) fn by_raw(&self, other: &Self) -> Ordering {
        other.raw.total_cmp(&self.raw).then_with(|| self.by_submission(other))
    }

    /// The earlier submission first, then the id.
    fn by_submission(&self, other: &Self) -> Ordering {
        self.submitted.total_cmp(&other.submitted).then_with(|| self.id().cmp(other.id()))
    }

    /// The earlier submission first, then the larger ω′, then the id.
    pub(super) fn by_waiting_time(&self, other: &Self) -> Ordering {
        let submitted = self.submitted.total_cmp(&other.submitted);
        submitted.then_with(|| self.by_raw(other))
    }

    /// The order in which jobs shrink: the smaller ω′, then the later submission, then the id.
    pub(super) fn by_removal_order(&self, other: &Self) -> Ordering {
        let raw = self.raw.total_cmp(&other.raw);
        let submitted = || other.submitted.total_cmp(&self.submitted);
        raw.then_with(submitted).then_with(|| self.id().cmp(other.id()))
    }

    /// Whether it may shrink for `other`: a job of equal ω′ only if it came later (I2, I3, K6).
    #[expect(clippy::float_cmp, reason = "ω′ is compared as it is")]
    pub(super) fn may_shrink_for(&self, other: &Self) -> bool {
        self.raw < other.raw || self.raw == other.raw && self.submitted > other.submitted
    }
}

/// ω′: the least number of workers divided by the part of the largest node that one takes (K1, K2).
fn raw(min: u32, worker: Amount, largest: Amount) -> f64 {
    let part = |need: f64, all: f64| if all > 0.0 { saturate(need / all) } else { 0.0 };
    let parts = part(worker.cpu, largest.cpu) + part(worker.memory, largest.memory);
    saturate(f64::from(min) / parts.max(EPSILON))
}

/// The waiting and running jobs of one frame.
#[derive(Debug)]
pub(in crate::policies) struct GangPlans<'f> {
    /// By id.
    pub(in crate::policies) waiting: Vec<GangPlan<'f>>,
    /// By id.
    pub(in crate::policies) running: Vec<GangPlan<'f>>,
}

impl<'f> GangPlans<'f> {
    pub(in crate::policies) fn new(
        frame: &'f GangFrame,
        nodes: &Nodes<'_>,
        arrivals: &mut Arrivals,
    ) -> Self {
        let mut gangs: Vec<&Gang> = frame.jobs.iter().collect();
        gangs.sort_by(|a, b| a.id.cmp(&b.id));
        gangs.dedup_by(|a, b| a.id == b.id);
        arrivals.follow(frame.t, &gangs);
        let mut plans = Self { waiting: Vec::new(), running: Vec::new() };
        for gang in gangs {
            let plan = || GangPlan::new(gang, arrivals.submission_time(frame.t, gang), nodes);
            match gang.state {
                State::Waiting => plans.waiting.push(plan()),
                State::Running => plans.running.push(plan()),
                State::Finished => {}
            }
        }
        plans
    }

    /// The capacity that is really free: only running jobs take any.
    pub(in crate::policies) fn free(&self, nodes: &Nodes<'_>) -> FreeCapacity {
        let mut room = nodes.empty();
        for gang in &self.running {
            for (at, tasks) in &gang.placement {
                room.take(*at, gang.server.times(tasks.servers));
                room.take(*at, gang.worker.times(tasks.workers));
            }
        }
        room
    }

    /// The waiting jobs in the order in which they were submitted.
    pub(in crate::policies) fn by_submission(&self) -> Vec<&GangPlan<'f>> {
        let mut queue: Vec<_> = self.waiting.iter().collect();
        queue.sort_by(|a, b| a.by_submission(b));
        queue
    }

    /// The weight of each job.
    pub(in crate::policies) fn weights(&self) -> BTreeMap<JobId, Weight> {
        let all = self.waiting.iter().chain(&self.running);
        all.map(|gang| (gang.id().clone(), gang.weight())).collect()
    }
}

/// When jobs without a submission time were first seen.
#[derive(Debug, Default)]
pub(in crate::policies) struct Arrivals(BTreeMap<JobId, f64>);

impl Arrivals {
    /// Records new jobs and forgets those that are gone. `gangs` are sorted by id.
    fn follow(&mut self, t: f64, gangs: &[&Gang]) {
        self.0.retain(|id, _| gangs.binary_search_by(|gang| gang.id.cmp(id)).is_ok());
        for gang in gangs.iter().filter(|gang| submitted(gang).is_none()) {
            self.0.entry(gang.id.clone()).or_insert(t);
        }
    }

    fn submission_time(&self, t: f64, gang: &Gang) -> f64 {
        let first_seen = || self.0.get(&gang.id).copied().unwrap_or(t);
        // Adding 0 turns -0 into 0, which would order below it.
        submitted(gang).unwrap_or_else(first_seen) + 0.0
    }
}

fn submitted(gang: &Gang) -> Option<f64> {
    gang.submitted.filter(|at| at.is_finite())
}
