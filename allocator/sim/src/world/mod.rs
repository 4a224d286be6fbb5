//! A run: events in the order of their time, and what they lead to.

mod cluster;
mod decide;
mod fail;
mod finish;
mod jobs;
mod life;
mod live;
mod place;
mod queue;
mod station;
mod trace;

use std::collections::BTreeSet;

use paceline_policy::policies::{AnyPolicy, Unlimited};
use paceline_policy::{Engine, Params};

use crate::fluid::Index;
use crate::outcome::{Line, Outcome};
use crate::scenario::{Arm, Job, Scenario, ScenarioError};
use crate::trace::Trace;
use cluster::Cluster;
use jobs::{Instances, Jobs};
use queue::{Queue, What};
use station::Station;
use trace::Watch;

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

/// What a run leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Its figures.
    pub outcome: Outcome,
    /// Its frames and decisions, where they were wanted.
    pub lines: Vec<Line>,
    /// What each job had over time, where it was [watched](Run::watched).
    pub trace: Option<Trace>,
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
    jobs: Jobs,
    instances: Instances,
    stations: Vec<Station>,
    /// The policy of the whole cluster, where it is one.
    cluster: Option<Cluster>,
    /// Whether anything of the scenario fails at all.
    can_fail: bool,
    /// Whether there are jobs that ask for more or less as others do.
    company_matters: bool,
    /// Jobs that have arrived and have no node yet.
    waiting: Vec<Index>,
    /// Jobs that no node works for.
    stranded: Vec<Index>,
    /// Jobs on their way to a node: another one, or their own after a crash.
    moving: BTreeSet<Index>,
    /// The nodes that work, by how many jobs run there.
    by_jobs: BTreeSet<(usize, usize)>,
    /// How many were placed by turns.
    turns: usize,
    /// Jobs that are not over.
    left: usize,
    /// When the last job was done.
    last_end: f64,
    done: Done,
    /// What is noted of the run, where it is watched.
    watch: Option<Watch>,
}

impl<'a> World<'a> {
    fn new(run: &'a Run<'a>, workload: Vec<Job>) -> Result<Self, ScenarioError> {
        let AnyPolicy::Jobs(policy) = run.scenario.policy(run.arm)? else {
            return Err(ScenarioError::NotOfJobs(run.arm.policy.clone()));
        };
        let queue = Queue::new(workload.iter().map(|job| job.arrive), run.scenario.nodes.len());
        let mut cluster = None;
        let mut stations = Vec::new();
        let mut first = Some(policy);
        if run.arm.is_of_a_cluster() {
            cluster = first.take().map(Cluster::new);
        }
        for (index, node) in run.scenario.nodes.iter().enumerate() {
            let policy = match (&cluster, first.take()) {
                // The cluster's policy decides, and the node's engine watches.
                (Some(_), _) => Box::new(Unlimited::new(&Params::default())?),
                (None, Some(policy)) => policy,
                (None, None) => match run.scenario.policy(run.arm)? {
                    AnyPolicy::Jobs(policy) => policy,
                    AnyPolicy::Tasks(_) | AnyPolicy::Gangs(_) => {
                        return Err(ScenarioError::NotOfJobs(run.arm.policy.clone()));
                    }
                },
            };
            let engine = Engine::new(node.name.clone(), node.cpus, node.memory, policy);
            let engine = engine.limited_by(run.scenario.limiter_below(run.arm))?;
            stations.push(Station::new(node, &run.scenario.tempo, engine, (run.seed, index)));
        }
        let left = workload.len();
        let can_fail = run.scenario.nodes.iter().any(|node| node.failures.is_some())
            || workload.iter().any(|job| job.failures.is_some());
        let company_matters = workload.iter().any(Job::minds_company);
        let mut world = Self {
            run,
            now: 0.0,
            queue,
            jobs: Jobs::new(workload, run.seed),
            instances: Instances::default(),
            stations,
            cluster,
            can_fail,
            company_matters,
            waiting: Vec::new(),
            stranded: Vec::new(),
            moving: BTreeSet::new(),
            by_jobs: (0..run.scenario.nodes.len()).map(|node| (0, node)).collect(),
            turns: 0,
            left,
            last_end: 0.0,
            done: Done::default(),
            watch: None,
        };
        (0..run.scenario.nodes.len()).for_each(|node| world.expect_failure(node));
        Ok(world)
    }

    fn run(mut self) -> Done {
        while self.step() {}
        self.finish()
    }

    /// Lets the next thing happen; returns whether there was one.
    fn step(&mut self) -> bool {
        // The policy sees the last end, too, as it does live.
        let end = if self.left > 0 { self.run.scenario.until } else { self.last_end + COALESCE };
        let Some((at, what)) = self.queue.pop().filter(|(at, _)| *at <= end) else { return false };
        self.note_until(at);
        self.now = at;
        match what {
            What::Goal(node) => self.goals(node),
            What::Recover(node) => self.recover(node),
            What::Fail(node) => self.fail(node),
            What::Crash(job) => self.crash(job),
            What::Arrive(job) => self.arrive(job),
            What::Resume(job) => self.settle(job),
            What::Look(node) => self.look(node),
            What::Decide(node) => self.decide(node),
            What::DecideAll => self.decide_all(),
        }
        true
    }
}

#[cfg(test)]
mod tests;
