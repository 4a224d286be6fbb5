//! Step 3, Algorithm 2: workers of lesser jobs that would have to go for a job to fit.
//!
//! In print, the test is of one node alone and comes before each removal but not after the last
//! (I5), removals that did not help stay (I6), and a failure leaves a partial plan (I9). Here the
//! whole job is packed over all nodes, before the first and after every removal; what turns out not
//! to be needed is given back; a failure touches nobody.

use std::collections::BTreeMap;

use super::crew::Crew;
use super::packing::Packing;
use super::reservation::{Books, Victim};
use super::room::{Amount, At, Room};

/// So many victims at a time add to the bound on what all of them could give.
const STEP: usize = 256;

/// The running jobs that have workers to give, if no plan has asked for them.
#[derive(Debug)]
pub(super) struct Givers<'a> {
    running: &'a [Crew<'a>],
    /// Those first that give way first.
    order: Vec<Victim>,
    /// At least what the first 0, 1, 2 … times `STEP` of them could give, node by node.
    bounds: Vec<BTreeMap<At, Amount>>,
}

impl<'a> Givers<'a> {
    pub(super) fn new(running: &'a [Crew<'a>]) -> Self {
        let mut order: Vec<(Victim, &Crew<'_>)> = running.iter().enumerate().collect();
        order.retain(|(_, crew)| crew.spare() > 0);
        order.sort_by(|(_, a), (_, b)| a.by_yielding(b));
        let mut bound: BTreeMap<At, Amount> = BTreeMap::new();
        let mut bounds = vec![bound.clone()];
        for some in order.chunks(STEP) {
            for (_, giver) in some {
                for (at, post) in &giver.posts {
                    let most = giver.worker.times(post.workers.min(giver.spare()));
                    let bound = bound.entry(*at).or_default();
                    *bound = bound.plus(most);
                }
            }
            bounds.push(bound.clone());
        }
        Self { running, order: order.into_iter().map(|(victim, _)| victim).collect(), bounds }
    }

    /// Those who give way to `crew`.
    fn victims_of(&self, crew: &Crew<'_>) -> impl Iterator<Item = (Victim, &'a Crew<'a>)> {
        let known =
            self.order.iter().filter_map(|victim| Some((*victim, self.running.get(*victim)?)));
        known.take_while(|(_, giver)| giver.yields_to(crew))
    }

    /// Whether `crew` has a chance in `room` if all its victims gave all they have.
    fn may_suffice(&self, crew: &Crew<'_>, room: &Room) -> bool {
        let victims = self.order.partition_point(|victim| {
            self.running.get(*victim).is_some_and(|giver| giver.yields_to(crew))
        });
        let mut room = room.clone();
        for (at, amount) in self.bounds.get(victims.div_ceil(STEP)).into_iter().flatten() {
            room.give(*at, *amount);
        }
        Gauge::new(crew, &room).may_fit(crew)
    }
}

/// A way to make a job fit.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) packing: Packing,
    /// The workers that go, one entry each, in the order in which they were chosen.
    pub(super) removals: Vec<(Victim, At)>,
}

impl Plan {
    /// Looks for one.
    pub(super) fn find(crew: &Crew<'_>, givers: &Givers<'_>, books: &Books<'_>) -> Option<Self> {
        let mut room = books.after_removals(crew.id());
        if !givers.may_suffice(crew, &room) {
            return None;
        }
        let mut gauge = Gauge::new(crew, &room);
        let mut removals = Vec::new();
        let mut packing = gauge.pack(crew, &room);
        for (victim, giver) in givers.victims_of(crew) {
            let mut posts = Vec::new();
            for gone in 0..books.spare(victim) {
                if packing.is_some() {
                    break;
                }
                if gone == 0 {
                    posts = posts_of(giver, victim, books);
                }
                let Some(post) = next_post(&mut posts, &room) else { break };
                post.workers -= 1;
                let at = post.at;
                room.give(at, giver.worker);
                gauge.look(crew, &room, at);
                removals.push((victim, at));
                packing = gauge.pack(crew, &room);
            }
        }
        let mut plan = Self { packing: packing?, removals };
        plan.give_back(crew, givers.running, room);
        Some(plan)
    }

    /// Gives back, the last first and once through, every worker without whose removal the job
    /// still fits (I6).
    fn give_back(&mut self, crew: &Crew<'_>, running: &[Crew<'_>], mut room: Room) {
        let mut needed = Vec::new();
        for (victim, at) in self.removals.drain(..).rev() {
            let Some(giver) = running.get(victim) else { continue };
            let before = room.free(at);
            room.take(at, giver.worker);
            // Where the job is not packed on this node, it still fits with less room here.
            if self.packing.uses(at) {
                if let Some(packing) = Packing::find(crew, &room) {
                    self.packing = packing;
                } else {
                    room.set(at, before);
                    needed.push((victim, at));
                }
            }
        }
        needed.reverse();
        self.removals = needed;
        // Of nodes that fit all of the job, another may be left the least idle by now.
        if let Some(packing) = Packing::find(crew, &room) {
            self.packing = packing;
        }
    }
}

/// A victim's workers on one node.
struct Post {
    at: At,
    workers: u32,
    /// Whether it has parameter servers there.
    beside: bool,
}

fn posts_of(giver: &Crew<'_>, victim: Victim, books: &Books<'_>) -> Vec<Post> {
    let posts = giver.posts.iter().map(|(at, post)| Post {
        at: *at,
        workers: books.workers(victim, *at),
        beside: post.servers > 0,
    });
    posts.collect()
}

/// Where the next worker goes from: a node without the job's parameter servers (I4), of these the
/// least idle, of these the first by name.
fn next_post<'p>(posts: &'p mut [Post], room: &Room) -> Option<&'p mut Post> {
    let left = posts.iter_mut().filter(|post| post.workers > 0);
    left.min_by_key(|post| (post.beside, room.idle(post.at), post.at))
}

/// A quick test that a job which fits always passes: packing is tried only where it has a chance.
struct Gauge {
    /// How many of the job's workers, and of its parameter servers, each node holds by itself.
    held: BTreeMap<At, (u64, u64)>,
    workers: u64,
    servers: u64,
}

impl Gauge {
    fn new(crew: &Crew<'_>, room: &Room) -> Self {
        let mut gauge = Self { held: BTreeMap::new(), workers: 0, servers: 0 };
        for at in room.nodes() {
            gauge.look(crew, room, at);
        }
        gauge
    }

    /// Takes in what is free on one node by now.
    fn look(&mut self, crew: &Crew<'_>, room: &Room, at: At) {
        let free = room.free(at);
        let workers = u64::from(free.holds(crew.worker, crew.gang.worker.min));
        let servers = u64::from(free.holds(crew.server, crew.gang.ps.count));
        let (old_workers, old_servers) = self.held.insert(at, (workers, servers)).unwrap_or((0, 0));
        self.workers = self.workers - old_workers + workers;
        self.servers = self.servers - old_servers + servers;
    }

    fn may_fit(&self, crew: &Crew<'_>) -> bool {
        self.workers >= crew.gang.worker.min.into() && self.servers >= crew.gang.ps.count.into()
    }

    fn pack(&self, crew: &Crew<'_>, room: &Room) -> Option<Packing> {
        if self.may_fit(crew) { Packing::find(crew, room) } else { None }
    }
}
