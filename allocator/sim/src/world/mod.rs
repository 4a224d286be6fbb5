//! A run: handles events in the order of their time.
//!
//! The decision engine gets the events that the live controller gives it; a cluster's policy sees
//! the frames of all nodes as one. The live controller samples once a second between decisions. A
//! simulated job does not change until something happens, so the engine says when samples have
//! settled, and the rest are left out. Samples between decisions contain no losses: only policies
//! read losses, and they cost most.
//!
//! What a job asks of the node may depend on other jobs. Others at their limits run in bursts that
//! its threads cannot make up for. Jobs without a limit take turns with it, so no weight gives it
//! the whole node. On an oversubscribed node its weight may count only in part. A job with a limit below
//! an equal share competes until it has used up that limit. How long batches take, and so how often
//! `DQoES` runs, has a random part.

mod cluster;
mod decide;
mod fail;
mod finish;
mod jobs;
mod life;
mod live;
mod node_state;
mod place;
mod queue;
mod trace;

use std::collections::BTreeSet;

use paceline_policy::policies::{AnyPolicy, Unlimited};
use paceline_policy::{Engine, Params};

use crate::effort::{Effort, TooMuch, too_long};
use crate::fluid::Index;
use crate::outcome::{Line, Outcome};
use crate::scenario::{Arm, Job, Scenario, ScenarioError};
use crate::trace::Trace;
use cluster::Cluster;
use jobs::{Instances, Jobs};
use node_state::NodeState;
use queue::{Queue, SimEvent};
use trace::Watch;

/// Events within this time, in seconds, cause one decision of the policy, as in the live
/// controller.
const COALESCE: f64 = 0.02;

/// One run of a policy on a scenario.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// What is simulated.
    pub scenario: &'a Scenario,
    /// The policy.
    pub arm: &'a Arm,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether frames and decisions are recorded.
    pub record: bool,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Its figures.
    pub outcome: Outcome,
    /// Its frames and decisions, if they were recorded.
    pub lines: Vec<Line>,
    /// The share of each job over time, if it was [watched](Run::watched).
    pub trace: Option<Trace>,
}

impl Run<'_> {
    /// Simulates until every job is done, or until the scenario's end.
    pub fn simulate(&self) -> Result<Done, ScenarioError> {
        let workload = self.scenario.draw(self.seed);
        World::new(self, workload)?.run()
    }
}

#[derive(Debug)]
struct World<'a> {
    run: &'a Run<'a>,
    now: f64,
    queue: Queue,
    jobs: Jobs,
    instances: Instances,
    nodes: Vec<NodeState>,
    /// The policy of the whole cluster, if it is one.
    cluster: Option<Cluster>,
    /// Whether anything in the scenario can fail.
    can_fail: bool,
    /// Whether the demand of some job depends on other jobs.
    competition_matters: bool,
    /// Jobs that have arrived and have no node yet.
    waiting: Vec<Index>,
    /// Jobs without a working node.
    stranded: Vec<Index>,
    /// Jobs that are being moved, or restart after a crash.
    moving: BTreeSet<Index>,
    /// The working nodes, ordered by their number of jobs.
    nodes_by_load: BTreeSet<(usize, usize)>,
    /// How many jobs were placed, for the round-robin placement.
    placements: usize,
    /// The number of unfinished jobs.
    left: usize,
    /// When the last job was done.
    last_end: f64,
    done: Done,
    /// What is recorded of the run, if it is watched.
    watch: Option<Watch>,
    /// What it may still compute.
    effort: Effort,
}

impl<'a> World<'a> {
    fn new(run: &'a Run<'a>, workload: Vec<Job>) -> Result<Self, ScenarioError> {
        let AnyPolicy::Jobs(policy) = run.scenario.policy(run.arm)? else {
            return Err(ScenarioError::NotOfJobs(run.arm.policy.clone()));
        };
        let queue = Queue::new(workload.iter().map(|job| job.arrive), run.scenario.nodes.len());
        let mut cluster = None;
        let mut nodes = Vec::new();
        let mut first = Some(policy);
        if run.arm.is_cluster_policy() {
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
            let engine = engine.with_limiter(run.scenario.limiter_below(run.arm))?;
            nodes.push(NodeState::new(
                node,
                &run.scenario.speed_profile,
                engine,
                (run.seed, index),
            ));
        }
        let left = workload.len();
        let can_fail = run.scenario.nodes.iter().any(|node| node.failures.is_some())
            || workload.iter().any(|job| job.failures.is_some());
        let competition_matters = workload.iter().any(Job::depends_on_competition);
        let mut world = Self {
            run,
            now: 0.0,
            queue,
            jobs: Jobs::new(workload, run.seed),
            instances: Instances::default(),
            nodes,
            cluster,
            can_fail,
            competition_matters,
            waiting: Vec::new(),
            stranded: Vec::new(),
            moving: BTreeSet::new(),
            nodes_by_load: (0..run.scenario.nodes.len()).map(|node| (0, node)).collect(),
            placements: 0,
            left,
            last_end: 0.0,
            done: Done::default(),
            watch: None,
            effort: Effort::default(),
        };
        (0..run.scenario.nodes.len()).for_each(|node| world.schedule_failure(node));
        Ok(world)
    }

    fn run(mut self) -> Result<Done, ScenarioError> {
        let ran = (|| {
            while self.step()? {}
            Ok(())
        })();
        ran.map_err(|TooMuch| {
            let Run { arm, seed, .. } = self.run;
            too_long(&format!("{arm} with seed {seed}"), self.now)
        })?;
        Ok(self.finish())
    }

    /// How many jobs an event looks at.
    fn jobs_of(&self, what: SimEvent) -> usize {
        match what {
            SimEvent::Goal(node)
            | SimEvent::Recover(node)
            | SimEvent::Fail(node)
            | SimEvent::Sample(node)
            | SimEvent::Decide(node) => self.nodes.get(node).map_or(0, |state| state.by_id.len()),
            SimEvent::DecideAll => self.nodes.iter().map(|state| state.by_id.len()).sum(),
            SimEvent::Crash(_) | SimEvent::Arrive(_) | SimEvent::Resume(_) => 0,
        }
    }

    /// Handles the next event; returns whether there was one.
    fn step(&mut self) -> Result<bool, TooMuch> {
        // The policy decides after the last end, too, as it does live.
        let end = if self.left > 0 { self.run.scenario.until } else { self.last_end + COALESCE };
        let next = self.queue.pop().filter(|(at, _)| *at <= end);
        let Some((at, what)) = next else { return Ok(false) };
        self.effort.spend(self.jobs_of(what))?;
        self.trace_until(at);
        self.now = at;
        match what {
            SimEvent::Goal(node) => self.goals(node),
            SimEvent::Recover(node) => self.recover(node),
            SimEvent::Fail(node) => self.fail(node),
            SimEvent::Crash(job) => self.crash(job),
            SimEvent::Arrive(job) => self.arrive(job),
            SimEvent::Resume(job) => self.start_or_place(job),
            SimEvent::Sample(node) => self.sample(node),
            SimEvent::Decide(node) => self.decide(node),
            SimEvent::DecideAll => self.decide_all(),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
