//! A run: events in the order of their time, and what they lead to.

mod cluster;
mod decide;
mod live;
mod place;
mod queue;
mod station;

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::policies::AnyPolicy;
use paceline_policy::{Engine, Event, JobId, Params, Policy, Variant, policies};

use crate::fluid::Index;
use crate::outcome::{Line, Outcome};
use crate::scenario::{Arm, Job, Scenario, ScenarioError};
use cluster::Cluster;
use live::{Goal, Live};
use queue::{Queue, What};
use station::Station;

/// What happens within this time leads to one run of the policy, as in the live driver.
const COALESCE: f64 = 0.02;

/// A policy, a seed, and whether every run of the policy is to be written down.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// What is simulated.
    pub scenario: &'a Scenario,
    /// Under which policy.
    pub arm: &'a Arm,
    /// What randomness follows from.
    pub seed: u64,
    /// Whether frames and decisions are wanted.
    pub record: bool,
}

/// A goal that is so near, in seconds, is reached: that is rounding.
const ROUNDING: f64 = 1e-9;

/// What a run leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Its figures.
    pub outcome: Outcome,
    /// Its frames and decisions, where they were wanted.
    pub lines: Vec<Line>,
}

impl Run<'_> {
    /// Simulates until every job is done, or until the scenario's end.
    pub fn simulate(&self) -> Result<Done, ScenarioError> {
        let workload = self.scenario.draw(self.seed);
        Ok(World::new(self, workload)?.run())
    }
}

#[derive(Debug)]
struct World<'a> {
    run: &'a Run<'a>,
    now: f64,
    queue: Queue,
    jobs: Vec<Live>,
    stations: Vec<Station>,
    /// The policy of the whole cluster, where it is one.
    cluster: Option<Cluster>,
    by_id: BTreeMap<JobId, Index>,
    /// Jobs that have arrived and have no node yet.
    waiting: Vec<Index>,
    /// Jobs on their way to another node.
    moving: BTreeSet<Index>,
    /// The nodes by how many jobs run there.
    by_jobs: BTreeSet<(usize, usize)>,
    /// How many were placed by turns.
    turns: usize,
    /// Jobs that are not over.
    left: usize,
    /// When the last job was done.
    last_end: f64,
    done: Done,
}

impl<'a> World<'a> {
    fn new(run: &'a Run<'a>, workload: Vec<Job>) -> Result<Self, ScenarioError> {
        let AnyPolicy::Jobs(policy) = run.scenario.policy(run.arm)? else {
            return Err(ScenarioError::NotOfJobs(run.arm.policy.clone()));
        };
        let mut queue = Queue::default();
        let mut cluster = None;
        let mut stations = Vec::new();
        let mut first = Some(policy);
        if run.arm.is_of_a_cluster() {
            cluster = first.take().map(Cluster::new);
        }
        for node in &run.scenario.nodes {
            let policy = match (&cluster, first.take()) {
                (Some(_), _) => agent()?,
                (None, Some(policy)) => policy,
                (None, None) => match run.scenario.policy(run.arm)? {
                    AnyPolicy::Jobs(policy) => policy,
                    AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => {
                        return Err(ScenarioError::NotOfJobs(run.arm.policy.clone()));
                    }
                },
            };
            let engine = Engine::new(node.name.clone(), node.cpus, node.memory, policy);
            let engine = engine.limited_by(run.scenario.limiter)?;
            stations.push(Station::new(node, engine));
        }
        for (index, job) in workload.iter().enumerate() {
            queue.push(job.arrive, What::Arrive(index));
        }
        let left = workload.len();
        let by_id = workload.iter().enumerate().map(|(at, job)| (job.id.clone(), at)).collect();
        let live = |(index, job)| Live::new(job, index, run.seed);
        let jobs = workload.into_iter().enumerate().map(live).collect();
        Ok(Self {
            run,
            now: 0.0,
            queue,
            jobs,
            stations,
            cluster,
            by_id,
            waiting: Vec::new(),
            moving: BTreeSet::new(),
            by_jobs: (0..run.scenario.nodes.len()).map(|node| (0, node)).collect(),
            turns: 0,
            left,
            last_end: 0.0,
            done: Done::default(),
        })
    }

    fn run(mut self) -> Done {
        while self.left > 0 {
            let Some((at, what)) = self.queue.pop() else { break };
            if at > self.run.scenario.until {
                break;
            }
            self.now = at;
            match what {
                What::Goal(node) => self.goals(node),
                What::Arrive(job) => self.arrive(job),
                What::Resume(job) => self.begin(job),
                What::Look(node) => self.look(node),
                What::Decide(node) => self.decide(node),
                What::DecideAll => self.decide_all(),
            }
        }
        self.finish()
    }

    fn arrive(&mut self, index: Index) {
        self.done.outcome.events += 1;
        if self.jobs.get(index).is_some_and(|live| live.node.is_some()) {
            self.begin(index);
        } else {
            self.place(index);
        }
    }

    /// A process of a job begins on its node.
    fn begin(&mut self, index: Index) {
        let now = self.now;
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node else { return };
        let Some(station) = self.stations.get_mut(node) else { return };
        self.moving.remove(&index);
        live.begin(now);
        live.count_loss(now, live.before);
        station.fluid.advance(now);
        let before = station.fluid.len();
        station.fluid.insert(index, live.party(station.cpus), live.goal());
        self.by_jobs.remove(&(before, node));
        self.by_jobs.insert((before + 1, node));
        station.tell(now, Event::Appeared(live.spec()));
        if live.has_own_weight() {
            let weight = paceline_policy::limiter::Setting::Weight(live.cpu_shares);
            station.tell(now, Event::Applied(live.job.id.clone(), weight));
        }
        self.changed(node);
    }

    /// Goals of jobs on a node are reached.
    fn goals(&mut self, node: usize) {
        let now = self.now;
        let Some(station) = self.stations.get_mut(node) else { return };
        if !station.goal.take(now) {
            return;
        }
        station.fluid.advance(now);
        let soon = now + ROUNDING;
        while let Some(station) = self.stations.get_mut(node) {
            let Some((_, index)) = station.fluid.next().filter(|(at, _)| *at <= soon) else {
                break;
            };
            let Some(live) = self.jobs.get_mut(index) else { break };
            let goal = live.reach(now);
            station.fluid.reached(index, live.goal());
            if goal == Some(Goal::End) {
                self.done.outcome.events += 1;
                self.depart(index, node);
                self.over();
            }
        }
        self.changed(node);
    }

    /// A job's process on a node ends: what it has done is counted.
    fn depart(&mut self, index: Index, node: usize) {
        let now = self.now;
        let (Some(station), Some(live)) = (self.stations.get_mut(node), self.jobs.get_mut(index))
        else {
            return;
        };
        station.fluid.advance(now);
        live.outcome.batch_latency = Some(live.job.batch_seconds(station.fluid.share_of(index)));
        if let Some(tally) = station.fluid.remove(index) {
            let left = station.fluid.len();
            self.by_jobs.remove(&(left + 1, node));
            self.by_jobs.insert((left, node));
            live.before += tally.work;
            live.count_loss(now, live.before);
        }
        live.running = false;
        station.tell(now, Event::Gone(live.job.id.clone()));
    }

    /// A job is over.
    fn over(&mut self) {
        self.left -= 1;
        self.last_end = self.now;
    }

    /// Something happened on a node that its policy should see.
    fn changed(&mut self, node: usize) {
        self.plan(node);
        if self.cluster.is_some() {
            self.hurry_all();
            return;
        }
        let Some(station) = self.stations.get_mut(node) else { return };
        let at = station.decided.map_or(self.now, |at| self.now.max(at + COALESCE));
        station.decide.no_later(at, What::Decide(node), &mut self.queue);
    }

    /// Notes when the node's next goal is due.
    fn plan(&mut self, node: usize) {
        let Some(station) = self.stations.get_mut(node) else { return };
        let next = station.fluid.next().map(|(at, _)| at.max(self.now));
        station.goal.set(next, What::Goal(node), &mut self.queue);
    }

    /// The figures of the run as it stands.
    fn finish(mut self) -> Done {
        let endless = self.left > 0;
        let end = if endless { self.run.scenario.until.min(self.latest()) } else { self.last_end };
        let (mut used, mut wasted) = (0.0, 0.0);
        for station in &mut self.stations {
            station.fluid.advance(end);
            used += station.fluid.used();
            wasted += station.fluid.wasted();
        }
        for (index, live) in self.jobs.iter_mut().enumerate() {
            let Some(station) = live.node.and_then(|node| self.stations.get_mut(node)) else {
                continue;
            };
            if let Some(tally) = station.fluid.tally(index) {
                live.count_loss(end, live.before + tally.work);
                let share = station.fluid.share_of(index);
                live.outcome.batch_latency = Some(live.job.batch_seconds(share));
            }
        }
        let there_was = end * paceline_policy::unit::count(self.stations.len());
        let part = |seconds: f64| if there_was > 0.0 { seconds / there_was } else { 0.0 };
        let outcome = &mut self.done.outcome;
        (outcome.until, outcome.utilisation, outcome.stranded) = (end, part(used), part(wasted));
        outcome.jobs = self.jobs.into_iter().map(|live| live.outcome).collect();
        self.done
    }

    /// The end of a run in which some job is not over.
    fn latest(&self) -> f64 {
        if self.run.scenario.until.is_finite() { self.run.scenario.until } else { self.now }
    }
}

/// What watches over a node of a cluster and decides nothing: the cluster's policy does.
fn agent() -> Result<Box<dyn Policy>, ScenarioError> {
    match policies::build("none", Variant::Resolved, &Params::default())? {
        AnyPolicy::Jobs(policy) => Ok(policy),
        AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => {
            Err(ScenarioError::NotOfJobs("none".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests;
