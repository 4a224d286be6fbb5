//! Capacity that is reserved for a job until it is really free (K10).
//!
//! A worker that is to be removed still runs for a while. If the waiting job started at once, it would
//! land on a full node. Without a reservation, another job would take the freed capacity. So the job's
//! plan is kept, with the number of workers that it leaves to each victim.

use std::collections::BTreeMap;

use crate::cluster::gangs::Layout;
use crate::unit::JobId;

use super::capacity::{Amount, FreeCapacity, NodeIndex, Nodes};
use super::gang_plan::{GangPlan, GangPlans};
use super::packing::Packing;

/// One job's plan, kept between frames.
#[derive(Debug)]
pub(super) struct Reservation {
    plan: Layout,
    /// The number of workers that the plan leaves to a victim on a node.
    left: BTreeMap<(JobId, String), u32>,
}

/// A job that shrinks for another one: its index among the running jobs.
pub(super) type Victim = usize;

/// All reservations of one frame, and the capacity that results from them.
#[derive(Debug)]
pub(super) struct Reservations<'a> {
    nodes: &'a Nodes<'a>,
    running: &'a [GangPlan<'a>],
    kept: &'a mut BTreeMap<JobId, Reservation>,
    claims: BTreeMap<JobId, Claim>,
    /// The capacity that is really free.
    free: FreeCapacity,
    /// The capacity that will be free after all removals.
    future: FreeCapacity,
    /// The capacity that all plans take.
    claimed: BTreeMap<NodeIndex, Amount>,
    /// The workers that the plans leave to a victim on a node: the minimum over all plans.
    left: BTreeMap<(Victim, NodeIndex), u32>,
    /// The number of workers that each running job can still lose, by its index.
    removable: Vec<u32>,
}

/// A reservation, evaluated for this frame's nodes and jobs.
#[derive(Debug)]
struct Claim {
    takes: BTreeMap<NodeIndex, Amount>,
    left: BTreeMap<(Victim, NodeIndex), u32>,
}

impl<'a> Reservations<'a> {
    /// Evaluates the reservations for a frame. Those whose job no longer waits or whose nodes are gone end.
    pub(super) fn new(
        nodes: &'a Nodes<'a>,
        gangs: &'a GangPlans<'a>,
        kept: &'a mut BTreeMap<JobId, Reservation>,
    ) -> Self {
        let free = gangs.free(nodes);
        let mut reservations = Self {
            nodes,
            running: &gangs.running,
            kept: &mut *kept,
            claims: BTreeMap::new(),
            future: free.clone(),
            free,
            claimed: BTreeMap::new(),
            left: BTreeMap::new(),
            removable: Vec::new(),
        };
        let mut claims = BTreeMap::new();
        reservations.kept.retain(|id, reservation| {
            let claim = find(&gangs.waiting, id)
                .and_then(|(_, gang)| reservation.claim(gang, &gangs.running, nodes));
            claim.map(|claim| claims.insert(id.clone(), claim)).is_some()
        });
        reservations.claims = claims;
        reservations.recount();
        reservations
    }

    /// The capacity that `job` may take now. It is the smaller of the capacity that is really free and
    /// the capacity after all removals, without the plans of others.
    pub(super) fn available_to(&self, job: &JobId) -> FreeCapacity {
        let mut room = self.after_removals(job);
        for at in self.free.nodes() {
            room.set(at, room.free(at).min(self.free.free(at)));
        }
        room
    }

    /// The capacity for `job` after all removals, without the plans of others.
    pub(super) fn after_removals(&self, job: &JobId) -> FreeCapacity {
        let mut room = self.future.clone();
        for (at, amount) in &self.claimed {
            room.take(*at, *amount);
        }
        for (at, amount) in self.claims.get(job).iter().flat_map(|claim| &claim.takes) {
            room.give(*at, *amount);
        }
        room
    }

    /// The capacity of the empty cluster for `job`, without the plans of others.
    pub(super) fn empty_cluster_for(&self, job: &JobId) -> FreeCapacity {
        let mut room = self.nodes.empty();
        let others = self.claims.iter().filter(|(id, _)| *id != job);
        for (at, amount) in others.flat_map(|(_, claim)| &claim.takes) {
            room.take(*at, *amount);
        }
        room
    }

    /// Ends every reservation except that of `job`.
    pub(super) fn end_all_but(&mut self, job: &JobId) {
        self.kept.retain(|id, _| id == job);
        self.claims.retain(|id, _| id == job);
        self.recount();
    }

    /// Whether `job` has a plan that is still possible. An impossible plan ends.
    pub(super) fn keeps_plan(&mut self, job: &JobId) -> bool {
        let Some(claim) = self.claims.get(job) else { return false };
        let room = self.after_removals(job);
        let fits = claim.takes.iter().all(|(at, amount)| room.free(*at).covers(*amount));
        if !fits {
            self.end(job);
        }
        fits
    }

    /// Takes the capacity of a job that starts, and ends its reservation.
    pub(super) fn start(&mut self, gang: &GangPlan<'_>, packing: &Packing) {
        for (at, amount) in packing.amounts(gang) {
            self.free.take(at, amount);
            self.future.take(at, amount);
        }
        self.end(gang.id());
    }

    /// Reserves capacity for a job: `removals` are the workers to remove for it, one entry each.
    pub(super) fn reserve(
        &mut self,
        gang: &GangPlan<'_>,
        plan: &Packing,
        removals: &[(Victim, NodeIndex)],
    ) {
        let mut left = BTreeMap::new();
        for (victim, at) in removals {
            let workers = self.workers(*victim, *at);
            let left = left.entry((*victim, *at)).or_insert(workers);
            *left = left.saturating_sub(1);
        }
        let named = |((victim, at), left): (&(Victim, NodeIndex), &u32)| {
            let gang = self.running.get(*victim)?;
            Some(((gang.id().clone(), self.nodes.name(*at).to_owned()), *left))
        };
        let reservation = Reservation {
            plan: plan.layout(self.nodes),
            left: left.iter().filter_map(named).collect(),
        };
        let claim = Claim { takes: sum(plan.amounts(gang)), left };
        self.count(&claim);
        self.claims.insert(gang.id().clone(), claim);
        self.kept.insert(gang.id().clone(), reservation);
    }

    /// The workers of a running job on a node that no plan removes.
    pub(super) fn workers(&self, victim: Victim, at: NodeIndex) -> u32 {
        let tasks = self.running.get(victim).and_then(|gang| gang.placement.get(&at));
        let seen = tasks.map_or(0, |tasks| tasks.workers);
        self.left.get(&(victim, at)).map_or(seen, |left| seen.min(*left))
    }

    /// The number of workers that a running job can still lose without falling below its `min`.
    pub(super) fn removable_workers(&self, victim: Victim) -> u32 {
        self.removable.get(victim).copied().unwrap_or(0)
    }

    /// The capacity that is really free.
    pub(super) fn free(&self) -> &FreeCapacity {
        &self.free
    }

    /// The nodes of `job`'s plan.
    pub(super) fn planned(&self, job: &JobId) -> Vec<String> {
        let takes = self.claims.get(job).into_iter().flat_map(|claim| claim.takes.keys());
        takes.map(|at| self.nodes.name(*at).to_owned()).collect()
    }

    fn end(&mut self, job: &JobId) {
        self.kept.remove(job);
        if self.claims.remove(job).is_some() {
            self.recount();
        }
    }

    /// Computes the totals again from all reservations.
    fn recount(&mut self) {
        self.future = self.free.clone();
        self.claimed.clear();
        self.left.clear();
        self.removable = self.running.iter().map(GangPlan::removable_workers).collect();
        let claims = std::mem::take(&mut self.claims);
        for claim in claims.values() {
            self.count(claim);
        }
        self.claims = claims;
    }

    /// Adds one reservation to the totals.
    fn count(&mut self, claim: &Claim) {
        for (at, amount) in &claim.takes {
            let claimed = self.claimed.entry(*at).or_default();
            *claimed = claimed.plus(*amount);
        }
        for ((victim, at), left) in &claim.left {
            let before = self.workers(*victim, *at);
            let gone = before.saturating_sub(*left);
            self.left.insert((*victim, *at), before - gone);
            if let Some(removable) = self.removable.get_mut(*victim) {
                *removable = removable.saturating_sub(gone);
            }
            if let Some(gang) = self.running.get(*victim) {
                self.future.give(*at, gang.worker.times(gone));
            }
        }
    }
}

impl Reservation {
    /// Evaluates the plan for this frame's nodes and jobs; `None` if one of its nodes is gone.
    fn claim(
        &mut self,
        gang: &GangPlan<'_>,
        running: &[GangPlan<'_>],
        nodes: &Nodes<'_>,
    ) -> Option<Claim> {
        let taken = |counts: &BTreeMap<String, u32>, need: Amount| {
            let take =
                |(name, count): (&String, &u32)| Some((nodes.find(name)?, need.times(*count)));
            counts.iter().map(take).collect::<Option<Vec<_>>>()
        };
        let servers = taken(&self.plan.ps, gang.server)?;
        let workers = taken(&self.plan.workers, gang.worker)?;
        // A victim that is gone or stopped is forgotten. If it returns, it counts as new.
        self.left.retain(|(id, _), _| find(running, id).is_some());
        let place = |((id, name), left): (&(JobId, String), &u32)| {
            Some(((find(running, id)?.0, nodes.find(name)?), *left))
        };
        let left = self.left.iter().filter_map(place).collect();
        Some(Claim { takes: sum(servers.into_iter().chain(workers)), left })
    }
}

/// The job called `id` and its index, among jobs sorted by id.
fn find<'c, 'f>(gangs: &'c [GangPlan<'f>], id: &JobId) -> Option<(usize, &'c GangPlan<'f>)> {
    let place = gangs.binary_search_by(|gang| gang.id().cmp(id)).ok()?;
    gangs.get(place).map(|gang| (place, gang))
}

fn sum(amounts: impl Iterator<Item = (NodeIndex, Amount)>) -> BTreeMap<NodeIndex, Amount> {
    let mut sum: BTreeMap<NodeIndex, Amount> = BTreeMap::new();
    for (at, amount) in amounts {
        let sum = sum.entry(at).or_default();
        *sum = sum.plus(amount);
    }
    sum
}
