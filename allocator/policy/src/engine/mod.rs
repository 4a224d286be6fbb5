//! The state machine around a policy: events in, effects out, time as an argument.
//!
//! The engine keeps what was observed of every job, turns it into a [`Frame`] when it is asked to
//! decide, lets the policy and then the [`Limiter`] judge it, and says what is to be done. A limit
//! counts as changed only when [`Event::Applied`] says so: the real engine may refuse.

mod job;

use std::collections::BTreeMap;

use paceline_wire::{Direction, Progress, Targets};

use crate::decision::Decision;
use crate::frame::{Frame, Node, Usage};
use crate::limiter::{Change, Limiter, Wanted};
use crate::policy::Policy;
use crate::unit::{JobId, Moment, Share, saturate};
use job::Job;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A managed job runs.
    Appeared(JobSpec),
    /// It no longer does.
    Gone(JobId),
    /// Its endpoint was read.
    Reported(JobId, Box<Progress>),
    /// Its use of resources was read.
    Used(JobId, Reading),
    /// A limit is in force.
    Applied(JobId, Share),
    /// The CPU time that everything on the node has used since it booted was read, in seconds.
    NodeUsed(f64),
    /// It is time for a run of the policy.
    Decide,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Write these limits, in this order.
    Set(Vec<Change>),
    /// The policy ran: what it saw and what it said.
    Decided(Box<(Frame, Decision)>),
    /// Ask for the next run of the policy at this moment, if nothing happens before.
    WakeAt(Moment),
}

/// What is known of a job before it is observed.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Its id.
    pub id: JobId,
    /// Whether it began during this run, so that its counters started at 0.
    pub fresh: bool,
    /// What is in force now.
    pub in_force: Share,
    /// The least share that its owner allows.
    pub min: Option<Share>,
    /// The largest.
    pub max: Option<Share>,
    /// Its weight beside other jobs.
    pub weight: f64,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// Which way its loss goes, where its owner says so: this rules over its endpoint.
    pub direction: Option<Direction>,
    /// Its targets, where its owner sets them: these rule over its endpoint.
    pub targets: Targets,
}

/// One reading of what a job has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// CPU time since it began, in seconds.
    pub cpu_seconds: f64,
    /// Time that it stood at its cap since it began, in seconds.
    pub throttled_seconds: Option<f64>,
    /// Memory in use, as a fraction of the node's.
    pub memory: Option<f64>,
}

/// One node, its jobs and its policy.
#[derive(Debug)]
pub struct Engine {
    node: Node,
    cpus: f64,
    policy: Box<dyn Policy>,
    limiter: Limiter,
    jobs: BTreeMap<JobId, Job>,
    /// The node's CPU time as last read, and as of the last frame.
    node_used: Option<(Moment, f64)>,
    node_mark: Option<(Moment, f64)>,
    interval: f64,
}

impl Engine {
    /// An engine for a node called `node` with `cpus` CPUs and `memory` bytes.
    pub fn new(node: String, cpus: f64, memory: Option<f64>, policy: Box<dyn Policy>) -> Self {
        Self {
            node: Node { name: node, cpus: Some(cpus), memory, usage: Usage::default() },
            cpus,
            policy,
            limiter: Limiter::new(cpus),
            jobs: BTreeMap::new(),
            node_used: None,
            node_mark: None,
            interval: 0.0,
        }
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// Takes in one event that happened at `now`. Events come in the order of their time.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match event {
            Event::Appeared(spec) => {
                self.jobs.insert(spec.id.clone(), Job::new(now, spec));
            }
            Event::Gone(id) => {
                self.jobs.remove(&id);
            }
            Event::Reported(id, progress) => {
                self.on(&id, |job| job.reported(now, *progress));
            }
            Event::Used(id, reading) => self.on(&id, |job| job.used(now, reading)),
            Event::Applied(id, share) => self.on(&id, |job| job.applied(share)),
            Event::NodeUsed(seconds) => self.node_used = Some((now, seconds)),
            Event::Decide => return self.decide(now),
        }
        Vec::new()
    }

    fn on(&mut self, id: &JobId, act: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(id) {
            act(job);
        }
    }

    fn decide(&mut self, now: Moment) -> Vec<Effect> {
        let frame = self.frame(now);
        let decision = self.policy.decide(&frame);
        let interval = decision.interval;
        let mut wanted = Vec::new();
        for (id, job) in &mut self.jobs {
            job.begin_frame(decision.limits.get(id).copied());
            wanted.push(Wanted {
                job: id.clone(),
                share: job.chosen,
                in_force: job.in_force,
                min: job.spec.min,
                max: job.spec.max,
                silent: job.is_silent(now, self.interval.max(interval)),
            });
        }
        self.interval = interval;
        self.node_mark = self.node_used;
        let changes = self.limiter.changes(&wanted);
        let mut effects = vec![Effect::Decided(Box::new((frame, decision)))];
        if !changes.is_empty() {
            effects.push(Effect::Set(changes));
        }
        effects.push(Effect::WakeAt(now.after(interval)));
        effects
    }

    /// What the policy is to see at `now`.
    fn frame(&self, now: Moment) -> Frame {
        let name = self.node.name.clone();
        let node =
            Node { usage: Usage { cpu: self.node_use(), ..Usage::default() }, ..self.node.clone() };
        let jobs = self.jobs.values().map(|job| job.in_frame(&name, self.cpus)).collect();
        Frame { t: now.seconds(), nodes: vec![node], jobs }
    }

    fn node_use(&self) -> Option<f64> {
        let ((from, before), (to, used)) = (self.node_mark?, self.node_used?);
        let seconds = to.seconds_since(from);
        (seconds > 0.0).then(|| saturate((used - before) / seconds / self.cpus))
    }
}

#[cfg(test)]
mod tests;
