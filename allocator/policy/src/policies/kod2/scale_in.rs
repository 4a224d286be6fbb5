//! Step 3, Algorithm 2: the workers of lower-ranked jobs to remove so that a job fits.
//!
//! In print, the test covers only one node and is not repeated after the last removal (I5), useless
//! removals stay (I6), and a failure leaves a partial plan (I9). Here the whole job is packed over all
//! nodes, before the first and after every removal. Removals that are not needed are undone. A failure
//! removes no worker.

use std::collections::BTreeMap;

use super::capacity::{Amount, FreeCapacity, NodeIndex};
use super::gang_plan::GangPlan;
use super::packing::Packing;
use super::reservation::{Reservations, Victim};

/// The number of victims that are added at a time to the bound on the capacity that they could free.
const STEP: usize = 256;

/// The running jobs with workers beyond their minimum.
#[derive(Debug)]
pub(super) struct Donors<'a> {
    running: &'a [GangPlan<'a>],
    /// In the order in which they shrink.
    order: Vec<Victim>,
    /// An upper bound on the capacity that the first 0, 1, 2 … times `STEP` of them could free, by node.
    bounds: Vec<BTreeMap<NodeIndex, Amount>>,
}

impl<'a> Donors<'a> {
    pub(super) fn new(running: &'a [GangPlan<'a>]) -> Self {
        let mut order: Vec<(Victim, &GangPlan<'_>)> = running.iter().enumerate().collect();
        order.retain(|(_, gang)| gang.removable_workers() > 0);
        order.sort_by(|(_, a), (_, b)| a.by_removal_order(b));
        let mut bound: BTreeMap<NodeIndex, Amount> = BTreeMap::new();
        let mut bounds = vec![bound.clone()];
        for some in order.chunks(STEP) {
            for (_, donor) in some {
                for (at, tasks) in &donor.placement {
                    let most = donor.worker.times(tasks.workers.min(donor.removable_workers()));
                    let bound = bound.entry(*at).or_default();
                    *bound = bound.plus(most);
                }
            }
            bounds.push(bound.clone());
        }
        Self { running, order: order.into_iter().map(|(victim, _)| victim).collect(), bounds }
    }

    /// The jobs that may shrink for `gang`.
    fn victims_of(&self, gang: &GangPlan<'_>) -> impl Iterator<Item = (Victim, &'a GangPlan<'a>)> {
        let known =
            self.order.iter().filter_map(|victim| Some((*victim, self.running.get(*victim)?)));
        known.take_while(|(_, donor)| donor.may_shrink_for(gang))
    }

    /// Whether `gang` might fit into `room` if all its victims shrank to their minimum.
    fn may_suffice(&self, gang: &GangPlan<'_>, room: &FreeCapacity) -> bool {
        let victims = self.order.partition_point(|victim| {
            self.running.get(*victim).is_some_and(|donor| donor.may_shrink_for(gang))
        });
        let mut room = room.clone();
        for (at, amount) in self.bounds.get(victims.div_ceil(STEP)).into_iter().flatten() {
            room.give(*at, *amount);
        }
        FitCheck::new(gang, &room).may_fit(gang)
    }
}

/// A packing of a job, and the removals that it needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) packing: Packing,
    /// The workers to remove, one entry each, in the order in which they were chosen.
    pub(super) removals: Vec<(Victim, NodeIndex)>,
}

impl Plan {
    /// Searches for a plan.
    pub(super) fn find(
        gang: &GangPlan<'_>,
        donors: &Donors<'_>,
        reservations: &Reservations<'_>,
    ) -> Option<Self> {
        let mut room = reservations.after_removals(gang.id());
        if !donors.may_suffice(gang, &room) {
            return None;
        }
        let mut check = FitCheck::new(gang, &room);
        let mut removals = Vec::new();
        let mut packing = check.pack(gang, &room);
        for (victim, donor) in donors.victims_of(gang) {
            let mut sources = Vec::new();
            for gone in 0..reservations.removable_workers(victim) {
                if packing.is_some() {
                    break;
                }
                if gone == 0 {
                    sources = sources_of(donor, victim, reservations);
                }
                let Some(source) = next_source(&mut sources, &room) else { break };
                source.workers -= 1;
                let at = source.at;
                room.give(at, donor.worker);
                check.update(gang, &room, at);
                removals.push((victim, at));
                packing = check.pack(gang, &room);
            }
        }
        let mut plan = Self { packing: packing?, removals };
        plan.give_back(gang, donors.running, room);
        Some(plan)
    }

    /// Undoes, once and from the last to the first, every removal without which the job still fits (I6).
    fn give_back(&mut self, gang: &GangPlan<'_>, running: &[GangPlan<'_>], mut room: FreeCapacity) {
        let mut needed = Vec::new();
        for (victim, at) in self.removals.drain(..).rev() {
            let Some(donor) = running.get(victim) else { continue };
            let before = room.free(at);
            room.take(at, donor.worker);
            // A node that the packing does not use may have less capacity.
            if self.packing.uses(at) {
                if let Some(packing) = Packing::find(gang, &room) {
                    self.packing = packing;
                } else {
                    room.set(at, before);
                    needed.push((victim, at));
                }
            }
        }
        needed.reverse();
        self.removals = needed;
        // By now, another node that fits the whole job may be left the least idle.
        if let Some(packing) = Packing::find(gang, &room) {
            self.packing = packing;
        }
    }
}

/// A victim's workers on one node.
struct Source {
    at: NodeIndex,
    workers: u32,
    /// Whether it has parameter servers there.
    beside_servers: bool,
}

fn sources_of(
    donor: &GangPlan<'_>,
    victim: Victim,
    reservations: &Reservations<'_>,
) -> Vec<Source> {
    let sources = donor.placement.iter().map(|(at, tasks)| Source {
        at: *at,
        workers: reservations.workers(victim, *at),
        beside_servers: tasks.servers > 0,
    });
    sources.collect()
}

/// The node of the next removal: nodes without the job's parameter servers first (I4), then the least
/// idle, then the first by name.
fn next_source<'p>(sources: &'p mut [Source], room: &FreeCapacity) -> Option<&'p mut Source> {
    let left = sources.iter_mut().filter(|source| source.workers > 0);
    left.min_by_key(|source| (source.beside_servers, room.idle(source.at), source.at))
}

/// A fast necessary condition for a job to fit, which saves hopeless attempts to pack it.
struct FitCheck {
    /// How many of the job's workers, and how many of its parameter servers, fit on each node alone.
    held: BTreeMap<NodeIndex, (u64, u64)>,
    workers: u64,
    servers: u64,
}

impl FitCheck {
    fn new(gang: &GangPlan<'_>, room: &FreeCapacity) -> Self {
        let mut check = Self { held: BTreeMap::new(), workers: 0, servers: 0 };
        for at in room.nodes() {
            check.update(gang, room, at);
        }
        check
    }

    /// Updates one node from its free capacity.
    fn update(&mut self, gang: &GangPlan<'_>, room: &FreeCapacity, at: NodeIndex) {
        let free = room.free(at);
        let workers = u64::from(free.holds(gang.worker, gang.spec.worker.min));
        let servers = u64::from(free.holds(gang.server, gang.spec.ps.count));
        let (old_workers, old_servers) = self.held.insert(at, (workers, servers)).unwrap_or((0, 0));
        self.workers = self.workers - old_workers + workers;
        self.servers = self.servers - old_servers + servers;
    }

    fn may_fit(&self, gang: &GangPlan<'_>) -> bool {
        self.workers >= gang.spec.worker.min.into() && self.servers >= gang.spec.ps.count.into()
    }

    fn pack(&self, gang: &GangPlan<'_>, room: &FreeCapacity) -> Option<Packing> {
        if self.may_fit(gang) { Packing::find(gang, room) } else { None }
    }
}
