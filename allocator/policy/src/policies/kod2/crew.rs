//! A distributed job as a policy reckons with it, and the orders that jobs stand in.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::cluster::GangFrame;
use crate::cluster::gangs::{Gang, State, Weight};
use crate::unit::{JobId, saturate};

use super::Asks;
use super::room::{Amount, At, EPSILON, Nodes, Room};

/// A waiting or running job.
#[derive(Debug)]
pub(in crate::policies) struct Crew<'f> {
    pub(in crate::policies) gang: &'f Gang,
    /// When it was submitted, or first seen.
    pub(in crate::policies) submitted: f64,
    /// ω′ (K1).
    pub(in crate::policies) raw: f64,
    /// What one parameter server needs.
    pub(in crate::policies) server: Amount,
    /// What one worker needs.
    pub(in crate::policies) worker: Amount,
    /// Where its tasks run, on listed nodes; empty unless it runs.
    pub(in crate::policies) posts: BTreeMap<At, Post>,
    /// Its workers on nodes that are not listed: they count, but cannot be asked for.
    pub(in crate::policies) elsewhere: u32,
}

/// A job's tasks on one node.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::policies) struct Post {
    pub(in crate::policies) servers: u32,
    pub(in crate::policies) workers: u32,
}

impl<'f> Crew<'f> {
    fn new(gang: &'f Gang, submitted: f64, nodes: &Nodes<'_>) -> Self {
        let worker = Amount::told(gang.worker.cpu, gang.worker.memory);
        let mut crew = Self {
            gang,
            submitted,
            raw: raw(gang.worker.min, worker, nodes.largest()),
            server: Amount::told(gang.ps.cpu, gang.ps.memory),
            worker,
            posts: BTreeMap::new(),
            elsewhere: 0,
        };
        if gang.state == State::Running {
            for (name, count) in &gang.placement.ps {
                if let Some(at) = nodes.find(name) {
                    crew.posts.entry(at).or_default().servers = *count;
                }
            }
            for (name, count) in &gang.placement.workers {
                match nodes.find(name) {
                    Some(at) => crew.posts.entry(at).or_default().workers = *count,
                    None => crew.elsewhere = crew.elsewhere.saturating_add(*count),
                }
            }
        }
        crew
    }

    pub(in crate::policies) fn id(&self) -> &'f JobId {
        &self.gang.id
    }

    /// What it needs to start.
    pub(in crate::policies) fn asks(&self) -> Asks {
        Asks { servers: self.gang.ps.count, workers: self.gang.worker.min }
    }

    /// What all of that takes.
    pub(super) fn least(&self) -> Amount {
        self.server.times(self.gang.ps.count).plus(self.worker.times(self.gang.worker.min))
    }

    /// How many workers it has in all.
    pub(super) fn workers(&self) -> u32 {
        let posted = self.posts.values().map(|post| post.workers);
        posted.fold(self.elsewhere, u32::saturating_add)
    }

    /// How many workers it has beyond its least number.
    pub(super) fn spare(&self) -> u32 {
        self.workers().saturating_sub(self.gang.worker.min)
    }

    /// The most workers that it can use.
    pub(super) fn most(&self) -> u32 {
        self.gang.worker.max.unwrap_or(self.gang.worker.min)
    }

    /// ω′ and ω. ω is 1 for large ω′, so nothing is ordered by it (Eq. 1, K3).
    fn weight(&self) -> Weight {
        Weight { raw: self.raw, weight: 1.0 / (1.0 + (-self.raw).exp()) }
    }

    /// The larger ω′ first, then who was submitted earlier, then the id.
    pub(super) fn by_raw(&self, other: &Self) -> Ordering {
        other.raw.total_cmp(&self.raw).then_with(|| self.by_submission(other))
    }

    /// Who was submitted earlier first, then the id.
    fn by_submission(&self, other: &Self) -> Ordering {
        self.submitted.total_cmp(&other.submitted).then_with(|| self.id().cmp(other.id()))
    }

    /// Those who were submitted earlier first, then the larger ω′, then the id.
    pub(super) fn by_patience(&self, other: &Self) -> Ordering {
        let submitted = self.submitted.total_cmp(&other.submitted);
        submitted.then_with(|| self.by_raw(other))
    }

    /// Who gives way first: the smaller ω′, then who was submitted later, then the id.
    pub(super) fn by_yielding(&self, other: &Self) -> Ordering {
        let raw = self.raw.total_cmp(&other.raw);
        let submitted = || other.submitted.total_cmp(&self.submitted);
        raw.then_with(submitted).then_with(|| self.id().cmp(other.id()))
    }

    /// Whether it gives way to `other`: a job of equal ω′ only if it came later (I2, I3, K6).
    #[expect(clippy::float_cmp, reason = "ω′ is compared as it is")]
    pub(super) fn yields_to(&self, other: &Self) -> bool {
        self.raw < other.raw || self.raw == other.raw && self.submitted > other.submitted
    }
}

/// ω′: the least number of workers by what one of them takes of the largest node (K1, K2).
fn raw(min: u32, worker: Amount, largest: Amount) -> f64 {
    let part = |need: f64, all: f64| if all > 0.0 { saturate(need / all) } else { 0.0 };
    let parts = part(worker.cpu, largest.cpu) + part(worker.memory, largest.memory);
    saturate(f64::from(min) / parts.max(EPSILON))
}

/// The jobs of one frame that are not over.
#[derive(Debug)]
pub(in crate::policies) struct Crews<'f> {
    /// By id.
    pub(in crate::policies) waiting: Vec<Crew<'f>>,
    /// By id.
    pub(in crate::policies) running: Vec<Crew<'f>>,
}

impl<'f> Crews<'f> {
    pub(in crate::policies) fn new(
        frame: &'f GangFrame,
        nodes: &Nodes<'_>,
        arrivals: &mut Arrivals,
    ) -> Self {
        let mut gangs: Vec<&Gang> = frame.jobs.iter().collect();
        gangs.sort_by(|a, b| a.id.cmp(&b.id));
        gangs.dedup_by(|a, b| a.id == b.id);
        arrivals.follow(frame.t, &gangs);
        let mut crews = Self { waiting: Vec::new(), running: Vec::new() };
        for gang in gangs {
            let crew = || Crew::new(gang, arrivals.of(frame.t, gang), nodes);
            match gang.state {
                State::Waiting => crews.waiting.push(crew()),
                State::Running => crews.running.push(crew()),
                State::Finished => {}
            }
        }
        crews
    }

    /// What is really free: only running jobs take room.
    pub(in crate::policies) fn free(&self, nodes: &Nodes<'_>) -> Room {
        let mut room = nodes.empty();
        for crew in &self.running {
            for (at, post) in &crew.posts {
                room.take(*at, crew.server.times(post.servers));
                room.take(*at, crew.worker.times(post.workers));
            }
        }
        room
    }

    /// The waiting jobs in the order in which they were submitted.
    pub(in crate::policies) fn by_submission(&self) -> Vec<&Crew<'f>> {
        let mut line: Vec<_> = self.waiting.iter().collect();
        line.sort_by(|a, b| a.by_submission(b));
        line
    }

    /// How much each job counts.
    pub(in crate::policies) fn weights(&self) -> BTreeMap<JobId, Weight> {
        let all = self.waiting.iter().chain(&self.running);
        all.map(|crew| (crew.id().clone(), crew.weight())).collect()
    }
}

/// When jobs appeared that do not tell when they were submitted.
#[derive(Debug, Default)]
pub(in crate::policies) struct Arrivals(BTreeMap<JobId, f64>);

impl Arrivals {
    /// Takes in who is there; who went is forgotten. `gangs` stand by id.
    fn follow(&mut self, t: f64, gangs: &[&Gang]) {
        self.0.retain(|id, _| gangs.binary_search_by(|gang| gang.id.cmp(id)).is_ok());
        for gang in gangs.iter().filter(|gang| submitted(gang).is_none()) {
            self.0.entry(gang.id.clone()).or_insert(t);
        }
    }

    fn of(&self, t: f64, gang: &Gang) -> f64 {
        let first_seen = || self.0.get(&gang.id).copied().unwrap_or(t);
        // Adding 0 turns -0 into 0, which would order below it.
        submitted(gang).unwrap_or_else(first_seen) + 0.0
    }
}

fn submitted(gang: &Gang) -> Option<f64> {
    gang.submitted.filter(|at| at.is_finite())
}
