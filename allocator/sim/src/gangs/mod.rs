//! Distributed jobs: admission and scaling over time, and what their placement sends over the
//! network.
//!
//! A gang's tasks hold the cores that they request, so CPU is not shared as a fluid. A gang runs at
//! the speed of its workers, from one decision to the next.

mod exchange;
mod trace;

use std::collections::BTreeMap;

use paceline_policy::cluster::gangs::{self, Change, GangFrame, Layout, Servers, Start, Workers};
use paceline_policy::frame::Node as FrameNode;
use paceline_policy::policies::AnyPolicy;
use paceline_policy::{GangPolicy, Scaling};

use crate::effort::{Effort, TooMuch, too_long};
use crate::outcome::{JobOutcome, Line};
use crate::scenario::{Arm, Gang, Node, Scenario, ScenarioError};
use crate::trace::Recorder;
use crate::world::Done;

pub use exchange::{Exchange, exchanges};

/// How often the policy runs if nothing happens, in seconds: `kod2` decides by time, too.
const DECISION_INTERVAL: f64 = 10.0;

/// Simulates a scenario's gangs under a policy that admits and scales them. It uses no randomness.
pub fn simulate(scenario: &Scenario, arm: &Arm, record: bool) -> Result<Done, ScenarioError> {
    cluster(scenario, arm, record)?.run(arm)
}

/// Like [`simulate`], and records what each gang held over time.
pub fn watched(scenario: &Scenario, arm: &Arm) -> Result<Done, ScenarioError> {
    let mut cluster = cluster(scenario, arm, false)?;
    cluster.watch = Some(Recorder::default());
    cluster.run(arm)
}

fn cluster<'a>(
    scenario: &'a Scenario,
    arm: &Arm,
    record: bool,
) -> Result<Cluster<'a>, ScenarioError> {
    if scenario.until.is_infinite() {
        let rule = "gangs can wait for each other indefinitely, so the scenario needs an end";
        return Err(ScenarioError::value("until", &"missing", rule));
    }
    match scenario.policy(arm)? {
        AnyPolicy::Gangs(policy) => Ok(Cluster::new(scenario, policy, record)),
        AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) => {
            Err(ScenarioError::NotOfGangs(arm.policy.clone()))
        }
    }
}

#[derive(Debug)]
struct Cluster<'a> {
    scenario: &'a Scenario,
    policy: Box<dyn GangPolicy>,
    record: bool,
    now: f64,
    gangs: Vec<Member<'a>>,
    done: Done,
    /// Core-seconds that tasks held.
    held: f64,
    /// What is recorded of the run, where it is watched.
    watch: Option<Recorder>,
    /// What it may still compute.
    effort: Effort,
}

#[derive(Debug)]
struct Member<'a> {
    gang: &'a Gang,
    state: gangs::State,
    layout: Layout,
    left: f64,
    outcome: JobOutcome,
}

impl<'a> Cluster<'a> {
    fn new(scenario: &'a Scenario, policy: Box<dyn GangPolicy>, record: bool) -> Self {
        let member = |gang: &'a Gang| Member {
            gang,
            state: gangs::State::Waiting,
            layout: Layout::default(),
            left: gang.work,
            outcome: JobOutcome {
                id: gang.id.to_string(),
                arrived: gang.arrive,
                alone: Some(gang.work / gang.speed(gang.workers.max)),
                ..JobOutcome::default()
            },
        };
        let gangs = scenario.gangs.iter().map(member).collect();
        Self {
            scenario,
            policy,
            record,
            now: 0.0,
            gangs,
            done: Done::default(),
            held: 0.0,
            watch: None,
            effort: Effort::default(),
        }
    }

    fn run(mut self, arm: &Arm) -> Result<Done, ScenarioError> {
        while let Some(next) = self.next().filter(|next| *next <= self.scenario.until) {
            let spent = self.effort.spend(self.gangs.len());
            spent.map_err(|TooMuch| too_long(&arm.to_string(), self.now))?;
            self.advance(next);
            self.decide();
        }
        let all: f64 = self.scenario.nodes.iter().map(|node| node.cpus).sum();
        let last = self.gangs.iter().filter_map(|member| member.outcome.finished);
        let open = self.gangs.iter().any(|member| member.outcome.finished.is_none());
        let end = if open { self.now } else { last.fold(0.0, f64::max) };
        self.done.trace = self.watch.take().map(|watch| watch.end(end));
        self.done.outcome.until = end;
        self.done.outcome.utilisation = Some(if end > 0.0 { self.held / (all * end) } else { 0.0 });
        // Gangs have whole tasks, and no limits that throttle them.
        self.done.outcome.stranded = Some(0.0);
        self.done.outcome.jobs = self.gangs.into_iter().map(|member| member.outcome).collect();
        Ok(self.done)
    }

    /// When the next event is due; `None` once every gang is done.
    fn next(&self) -> Option<f64> {
        let open = || self.gangs.iter().filter(|member| member.state != gangs::State::Finished);
        let arrivals = open().map(|member| member.gang.arrive);
        if self.done.outcome.decisions == 0 {
            return arrivals.min_by(f64::total_cmp);
        }
        let arrivals = arrivals.filter(|at| *at > self.now);
        let ends = open().filter_map(|member| {
            let speed = member.speed();
            (speed > 0.0).then(|| self.now + member.left / speed)
        });
        let here = open().any(|member| member.gang.arrive <= self.now);
        // If the period is lost in rounding at so late a time, no event is due.
        let period = here.then_some(self.now + DECISION_INTERVAL).filter(|at| *at > self.now);
        arrivals.chain(ends).chain(period).min_by(f64::total_cmp)
    }

    fn advance(&mut self, to: f64) {
        self.trace_until(to);
        let seconds = to - self.now;
        for member in &mut self.gangs {
            self.held += seconds * member.held();
            let speed = member.speed();
            // A gang that ends by then is done, even if no time passes.
            let ends = self.now + member.left / speed <= to;
            member.left -= seconds * speed;
            // A remainder of less than a hundred-millionth is a rounding error.
            if speed > 0.0 && (ends || member.left <= 1e-8 * member.gang.work) {
                member.state = gangs::State::Finished;
                member.layout = Layout::default();
                member.outcome.finished = Some(to);
                self.done.outcome.events += 1;
            }
        }
        self.now = to;
    }

    fn decide(&mut self) {
        let frame = GangFrame {
            t: self.now,
            nodes: self.scenario.nodes.iter().map(frame_node).collect(),
            jobs: self
                .gangs
                .iter()
                .filter(|member| member.gang.arrive <= self.now)
                .map(Member::in_frame)
                .collect(),
        };
        let scaling = self.policy.decide(&frame);
        self.done.outcome.events += 1;
        self.done.outcome.decisions += 1;
        if self.record {
            let json = |value: serde_json::Result<String>| value.expect("names are keys");
            let line = Line {
                frame: json(serde_json::to_string(&frame)),
                decision: json(serde_json::to_string(&scaling)),
            };
            self.effort.record(line.frame.len() + line.decision.len());
            self.done.lines.push(line);
        }
        self.apply(&scaling);
    }

    fn apply(&mut self, scaling: &Scaling) {
        let now = self.now;
        for Change { job, node, count, .. } in &scaling.scale_in {
            if let Some(member) = find(&mut self.gangs, job.as_str()) {
                if let Some(workers) = member.layout.workers.get_mut(node) {
                    *workers = workers.saturating_sub(*count);
                }
                member.outcome.preemptions += u64::from(*count);
                member.outcome.writes += u64::from(*count);
            }
        }
        for Start { job, layout, .. } in &scaling.start {
            let Some(member) = find(&mut self.gangs, job.as_str()) else { continue };
            add(&mut member.layout.ps, &layout.ps);
            add(&mut member.layout.workers, &layout.workers);
            let servers: u32 = member.layout.ps.values().sum();
            if servers >= member.gang.servers.min && member.workers() >= member.gang.workers.min {
                member.state = gangs::State::Running;
                member.outcome.started.get_or_insert(now);
            }
        }
        for Change { job, node, count, .. } in &scaling.scale_out {
            if let Some(member) = find(&mut self.gangs, job.as_str()) {
                *member.layout.workers.entry(node.clone()).or_default() += count;
                member.outcome.writes += u64::from(*count);
            }
        }
    }
}

impl Member<'_> {
    fn workers(&self) -> u32 {
        self.layout.workers.values().sum()
    }

    /// Work per second: 0 if some of the gang's tasks are missing.
    fn speed(&self) -> f64 {
        if self.state == gangs::State::Running { self.gang.speed(self.workers()) } else { 0.0 }
    }

    /// The cores that its tasks hold, working or not.
    fn held(&self) -> f64 {
        let servers: u32 = self.layout.ps.values().sum();
        f64::from(servers) * self.gang.servers.cpu
            + f64::from(self.workers()) * self.gang.workers.cpu
    }

    fn in_frame(&self) -> gangs::Gang {
        let Gang { servers, workers, .. } = self.gang;
        gangs::Gang {
            id: self.gang.id.clone(),
            submitted: Some(self.gang.arrive),
            state: self.state,
            ps: Servers {
                count: servers.min,
                cpu: Some(servers.cpu),
                memory: Some(servers.memory),
            },
            worker: Workers {
                min: workers.min,
                max: Some(workers.max),
                cpu: Some(workers.cpu),
                memory: Some(workers.memory),
            },
            placement: self.layout.clone(),
        }
    }
}

fn frame_node(node: &Node) -> FrameNode {
    FrameNode {
        name: node.name.as_str().into(),
        cpus: Some(node.cpus),
        memory: node.memory,
        ..FrameNode::default()
    }
}

fn find<'m, 'a>(gangs: &'m mut [Member<'a>], id: &str) -> Option<&'m mut Member<'a>> {
    gangs.iter_mut().find(|member| member.gang.id.as_str() == id)
}

fn add(to: &mut BTreeMap<String, u32>, more: &BTreeMap<String, u32>) {
    for (node, count) in more {
        *to.entry(node.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests;
