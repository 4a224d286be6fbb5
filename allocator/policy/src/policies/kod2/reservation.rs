//! Room that is kept for a job until it is really free (K10).
//!
//! A worker that was asked to go still runs for a while. Started at once, the job that it makes
//! room for would land on a full node; started later without a reservation, another job would take
//! the room. So the job's plan is kept, and with it what the plan left of the victims' workers.

use std::collections::BTreeMap;

use crate::cluster::gangs::Layout;
use crate::unit::JobId;

use super::crew::{Crew, Crews};
use super::packing::Packing;
use super::room::{Amount, At, Nodes, Room};

/// What is kept of one job's plan from frame to frame.
#[derive(Debug)]
pub(super) struct Reservation {
    plan: Layout,
    /// How many workers the plan leaves to a victim on a node.
    left: BTreeMap<(JobId, String), u32>,
}

/// A job that gives way, by its place among the running ones.
pub(super) type Victim = usize;

/// All reservations of one frame, and the room as they shape it.
#[derive(Debug)]
pub(super) struct Books<'a> {
    nodes: &'a Nodes<'a>,
    running: &'a [Crew<'a>],
    kept: &'a mut BTreeMap<JobId, Reservation>,
    claims: BTreeMap<JobId, Claim>,
    /// What is really free.
    free: Room,
    /// What will be free after all removals.
    future: Room,
    /// What all plans take.
    claimed: BTreeMap<At, Amount>,
    /// What the plans leave of a victim's workers on a node: of several plans, the least.
    left: BTreeMap<(Victim, At), u32>,
    /// How many workers each running job can still give, by its place.
    spare: Vec<u32>,
}

/// A reservation, reckoned with this frame's nodes and jobs.
#[derive(Debug)]
struct Claim {
    takes: BTreeMap<At, Amount>,
    left: BTreeMap<(Victim, At), u32>,
}

impl<'a> Books<'a> {
    /// Takes in a frame: reservations end whose job no longer waits or whose nodes are gone.
    pub(super) fn new(
        nodes: &'a Nodes<'a>,
        crews: &'a Crews<'a>,
        kept: &'a mut BTreeMap<JobId, Reservation>,
    ) -> Self {
        let free = crews.free(nodes);
        let mut books = Self {
            nodes,
            running: &crews.running,
            kept: &mut *kept,
            claims: BTreeMap::new(),
            future: free.clone(),
            free,
            claimed: BTreeMap::new(),
            left: BTreeMap::new(),
            spare: Vec::new(),
        };
        let mut claims = BTreeMap::new();
        books.kept.retain(|id, reservation| {
            let claim = find(&crews.waiting, id)
                .and_then(|(_, crew)| reservation.claim(crew, &crews.running, nodes));
            claim.map(|claim| claims.insert(id.clone(), claim)).is_some()
        });
        books.claims = claims;
        books.recount();
        books
    }

    /// What `job` may take now: the smaller of what is really free and of what will be free after
    /// all removals, less the plans of others.
    pub(super) fn open_to(&self, job: &JobId) -> Room {
        let mut room = self.after_removals(job);
        for at in self.free.nodes() {
            room.set(at, room.free(at).least(self.free.free(at)));
        }
        room
    }

    /// What will be free for `job` after all removals: less the plans of others.
    pub(super) fn after_removals(&self, job: &JobId) -> Room {
        let mut room = self.future.clone();
        for (at, amount) in &self.claimed {
            room.take(*at, *amount);
        }
        for (at, amount) in self.claims.get(job).iter().flat_map(|claim| &claim.takes) {
            room.give(*at, *amount);
        }
        room
    }

    /// The empty cluster for `job`: less the plans of others.
    pub(super) fn empty_to(&self, job: &JobId) -> Room {
        let mut room = self.nodes.empty();
        let others = self.claims.iter().filter(|(id, _)| *id != job);
        for (at, amount) in others.flat_map(|(_, claim)| &claim.takes) {
            room.take(*at, *amount);
        }
        room
    }

    /// Ends every reservation but that of `job`.
    pub(super) fn end_all_but(&mut self, job: &JobId) {
        self.kept.retain(|id, _| id == job);
        self.claims.retain(|id, _| id == job);
        self.recount();
    }

    /// Whether `job` has a plan that can still come true. One that cannot ends.
    pub(super) fn keeps_plan_of(&mut self, job: &JobId) -> bool {
        let Some(claim) = self.claims.get(job) else { return false };
        let room = self.after_removals(job);
        let fits = claim.takes.iter().all(|(at, amount)| room.free(*at).covers(*amount));
        if !fits {
            self.end(job);
        }
        fits
    }

    /// Takes the room of a job that starts, and ends its reservation.
    pub(super) fn start(&mut self, crew: &Crew<'_>, packing: &Packing) {
        for (at, amount) in packing.amounts(crew) {
            self.free.take(at, amount);
            self.future.take(at, amount);
        }
        self.end(crew.id());
    }

    /// Keeps room for a job: `removals` are the workers that go for it, one entry each.
    pub(super) fn reserve(&mut self, crew: &Crew<'_>, plan: &Packing, removals: &[(Victim, At)]) {
        let mut left = BTreeMap::new();
        for (victim, at) in removals {
            let workers = self.workers(*victim, *at);
            let left = left.entry((*victim, *at)).or_insert(workers);
            *left = left.saturating_sub(1);
        }
        let named = |((victim, at), left): (&(Victim, At), &u32)| {
            let crew = self.running.get(*victim)?;
            Some(((crew.id().clone(), self.nodes.name(*at).to_owned()), *left))
        };
        let reservation = Reservation {
            plan: plan.layout(self.nodes),
            left: left.iter().filter_map(named).collect(),
        };
        let claim = Claim { takes: sum(plan.amounts(crew)), left };
        self.count(&claim);
        self.claims.insert(crew.id().clone(), claim);
        self.kept.insert(crew.id().clone(), reservation);
    }

    /// The workers of a running job on a node that no plan has asked to go.
    pub(super) fn workers(&self, victim: Victim, at: At) -> u32 {
        let post = self.running.get(victim).and_then(|crew| crew.posts.get(&at));
        let seen = post.map_or(0, |post| post.workers);
        self.left.get(&(victim, at)).map_or(seen, |left| seen.min(*left))
    }

    /// How many workers a running job can still give without falling below its `min`.
    pub(super) fn spare(&self, victim: Victim) -> u32 {
        self.spare.get(victim).copied().unwrap_or(0)
    }

    /// What is really free.
    pub(super) fn free(&self) -> &Room {
        &self.free
    }

    /// The nodes that `job`'s plan lies on.
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

    /// Reckons anew with all reservations.
    fn recount(&mut self) {
        self.future = self.free.clone();
        self.claimed.clear();
        self.left.clear();
        self.spare = self.running.iter().map(Crew::spare).collect();
        let claims = std::mem::take(&mut self.claims);
        for claim in claims.values() {
            self.count(claim);
        }
        self.claims = claims;
    }

    /// Reckons with one more reservation.
    fn count(&mut self, claim: &Claim) {
        for (at, amount) in &claim.takes {
            let claimed = self.claimed.entry(*at).or_default();
            *claimed = claimed.plus(*amount);
        }
        for ((victim, at), left) in &claim.left {
            let before = self.workers(*victim, *at);
            let gone = before.saturating_sub(*left);
            self.left.insert((*victim, *at), before - gone);
            if let Some(spare) = self.spare.get_mut(*victim) {
                *spare = spare.saturating_sub(gone);
            }
            if let Some(crew) = self.running.get(*victim) {
                self.future.give(*at, crew.worker.times(gone));
            }
        }
    }
}

impl Reservation {
    /// Reckons with this frame's nodes and jobs; nothing if a node of the plan is gone.
    fn claim(&mut self, crew: &Crew<'_>, running: &[Crew<'_>], nodes: &Nodes<'_>) -> Option<Claim> {
        let taken = |counts: &BTreeMap<String, u32>, need: Amount| {
            let take =
                |(name, count): (&String, &u32)| Some((nodes.find(name)?, need.times(*count)));
            counts.iter().map(take).collect::<Option<Vec<_>>>()
        };
        let servers = taken(&self.plan.ps, crew.server)?;
        let workers = taken(&self.plan.workers, crew.worker)?;
        // A victim that went or stopped is forgotten: back again, it is new.
        self.left.retain(|(id, _), _| find(running, id).is_some());
        let place = |((id, name), left): (&(JobId, String), &u32)| {
            Some(((find(running, id)?.0, nodes.find(name)?), *left))
        };
        let left = self.left.iter().filter_map(place).collect();
        Some(Claim { takes: sum(servers.into_iter().chain(workers)), left })
    }
}

/// The job called `id` and its place, among jobs that stand by id.
fn find<'c, 'f>(crews: &'c [Crew<'f>], id: &JobId) -> Option<(usize, &'c Crew<'f>)> {
    let place = crews.binary_search_by(|crew| crew.id().cmp(id)).ok()?;
    crews.get(place).map(|crew| (place, crew))
}

fn sum(amounts: impl Iterator<Item = (At, Amount)>) -> BTreeMap<At, Amount> {
    let mut sum: BTreeMap<At, Amount> = BTreeMap::new();
    for (at, amount) in amounts {
        let sum = sum.entry(at).or_default();
        *sum = sum.plus(amount);
    }
    sum
}
