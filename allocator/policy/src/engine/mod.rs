//! The state machine around a policy: events in, effects out, time as an argument.
//!
//! The engine keeps what was observed of every job, turns it into a [`Frame`] when it is asked to
//! decide, lets the policy and then the [`Limiter`] judge it, and says what is to be done. A limit
//! counts as changed only when [`Event::Applied`] says so: the real engine may refuse.
//!
//! Between decisions, [`Event::Look`] lets the limiter alone judge anew: what others leave unused
//! is lent and taken back, and guards act, without the policy.

mod account;
mod any;
mod cluster;
mod job;
mod reading;
mod renewal;
mod report;
mod window;

use std::collections::BTreeSet;

use paceline_wire::{Direction, Targets};

use crate::decision::Decision;
use crate::frame::{Frame, Node, Usage};
use crate::limiter::{
    self, Change, Counters, Guard, Limiter, LimiterSettings, Setting, SettingError, View,
};
use crate::per_job::PerJob;
use crate::policy::Policy;
use crate::unit::{JobId, Moment, NodeName, Share, saturate};
use job::Job;

pub use account::Account;
pub use any::AnyEngine;
pub use cluster::{Cluster, NodeSpec};
pub use reading::Reading;
pub use report::{Report, Steps};

/// What was asked for and refused is asked for again by the next decision, and by looks after this
/// many seconds.
const RETRY: f64 = 5.0;

/// A run of the policy has no more effects than these: one of each kind.
const EFFECTS: usize = 4;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A managed job runs.
    Appeared(JobSpec),
    /// It no longer does, or is left alone from now on.
    Gone(JobId),
    /// It runs nowhere for now: it is on its way to this node, where it appears again. To a single
    /// node, it is gone.
    Moving(JobId, String),
    /// Its endpoint was read.
    Reported(JobId, Report),
    /// Its use of resources was read.
    Used(JobId, Reading),
    /// A setting is in force. Of a weight that nobody told of, the default is assumed.
    Applied(JobId, Setting),
    /// It is held at this share from now on, whatever the policy says: the policy does not see it
    /// any more, and nobody is lent of its share. Appeared anew, it is held no longer.
    Pinned(JobId, Share),
    /// Targets that rule over all others are set; those that are not given stay.
    Targets(JobId, Targets),
    /// A guard is switched on or off for this job.
    Guarded(JobId, Guard, bool),
    /// The CPU time that everything on the node has used since it booted was read, in seconds.
    NodeUsed(f64),
    /// What there is to be read has been read.
    Look,
    /// It is time for a run of the policy.
    Decide,
}

impl Event {
    /// Whether it only tells what was read, or that it was.
    fn is_reading(&self) -> bool {
        matches!(self, Self::Reported(..) | Self::Used(..) | Self::NodeUsed(_) | Self::Look)
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Write these settings, in this order.
    Set(Vec<Change>),
    /// The policy ran: what it saw and what it said.
    Decided(Box<(Frame, Decision)>),
    /// End these jobs for good: they have reached their objective. Said once for each job.
    End(Vec<JobId>),
    /// Ask for the next run of the policy at this moment, if nothing happens before.
    WakeAt(Moment),
}

/// What is known of a job before it is observed.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Its id.
    pub id: JobId,
    /// The node that it runs on, where there are several.
    pub node: Option<String>,
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
    /// By how much it may be slowed down beside an equal share: at least 1.
    pub max_slowdown: Option<f64>,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// Its whole work in seconds of the whole node, where its owner declares it.
    pub work: Option<f64>,
    /// Which way its loss goes, where its owner says so: this rules over its endpoint.
    pub direction: Option<Direction>,
    /// Its targets, where its owner sets them: these rule over its endpoint.
    pub targets: Targets,
}

/// One node, its jobs and its policy.
#[derive(Debug)]
pub struct Engine {
    node: Node,
    cpus: f64,
    policy: Box<dyn Policy>,
    limiter: Limiter,
    jobs: PerJob<Job>,
    /// The node's CPU time as last read, and as of the last frame.
    node_used: Option<(Moment, f64)>,
    node_mark: Option<(Moment, f64)>,
    interval: f64,
    /// For how many seconds a job may be silent, as far as that goes by the policy's intervals.
    patience: f64,
    /// When something happened last that was no reading.
    happened: Moment,
    /// Whether the last look left all as it was, and saw only what came after that.
    settled: bool,
    /// Jobs that are on their way to their end.
    ending: BTreeSet<JobId>,
}

impl Engine {
    /// An engine for a node called `node` with `cpus` CPUs and `memory` bytes.
    pub fn new(
        node: impl Into<NodeName>,
        cpus: f64,
        memory: Option<f64>,
        policy: Box<dyn Policy>,
    ) -> Self {
        Self {
            node: Node { name: node.into(), cpus: Some(cpus), memory, usage: Usage::default() },
            cpus,
            policy,
            limiter: Limiter::new(cpus),
            jobs: PerJob::new(),
            node_used: None,
            node_mark: None,
            interval: 0.0,
            patience: 0.0,
            happened: Moment::default(),
            settled: false,
            ending: BTreeSet::new(),
        }
    }

    /// Sets the limiter. Nothing may have happened yet.
    pub fn limited_by(self, settings: LimiterSettings) -> Result<Self, SettingError> {
        Ok(Self { limiter: Limiter::with(self.cpus, settings)?, ..self })
    }

    /// How often the limiter's guards acted.
    pub fn counters(&self) -> Counters {
        self.limiter.counters()
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// Whether a decision is due when a job has [reached a target](Policy::minds_targets).
    pub fn minds_targets(&self) -> bool {
        self.policy.minds_targets()
    }

    /// Whether the batches of a job have a target, and none is known yet that began after the last frame:
    /// only a report before the next one tells.
    pub fn awaits_batches(&self) -> bool {
        self.jobs.values().any(Job::awaits_batches)
    }

    /// Whether [`Event::Look`], and what is read for it, can matter before the next decision or to
    /// it while every job goes on as it does at `now`: a guard is on for some job; a job's batches
    /// have a target, and only a reading tells which of them began after the last frame; or shares
    /// are lent, and who is lent what has not settled.
    pub fn has_use_for_looks(&self, now: Moment) -> bool {
        let guarded = |job: &Job| {
            let guards = self.limiter.guards(job.switches, job.spec.max_slowdown);
            job.awaits_batches() || job.pinned.is_some() || !guards.is_empty()
        };
        self.jobs.values().any(guarded) || self.limiter.lends() && !self.is_settled(now)
    }

    /// Whether looks change nothing any more, nor does a job fall silent before the next decision.
    fn is_settled(&self, now: Moment) -> bool {
        let next = now.after(self.interval);
        self.settled && !self.jobs.values().any(|job| job.is_silent(next, self.patience))
    }

    /// Takes in one event that happened at `now`. Events come in the order of their time.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        if !event.is_reading() {
            (self.happened, self.settled) = (now, false);
        }
        match event {
            Event::Appeared(spec) => {
                self.limiter.forget(&spec.id);
                self.jobs.insert(spec.id.clone(), Job::new(now, spec));
                self.reserve();
            }
            Event::Gone(id) | Event::Moving(id, _) => {
                self.jobs.remove(&id);
                self.ending.remove(&id);
                self.reserve();
            }
            Event::Pinned(id, share) => {
                self.limiter.forget(&id);
                self.on(&id, |job| (job.pinned, job.asked) = (Some(share), None));
                self.reserve();
            }
            Event::Targets(id, targets) => self.on(&id, |job| job.order_targets(targets)),
            Event::Guarded(id, guard, on) => self.on(&id, |job| job.switches.set(guard, on)),
            Event::Reported(id, report) => self.on(&id, |job| job.reported(now, report)),
            Event::Used(id, reading) => self.on(&id, |job| job.used(now, reading)),
            Event::Applied(id, setting) => self.on(&id, |job| job.applied(setting)),
            Event::NodeUsed(seconds) => self.node_used = Some((now, seconds)),
            Event::Look => return self.look(now),
            Event::Decide => return self.decide(now),
        }
        Vec::new()
    }

    fn on(&mut self, id: &JobId, act: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(id) {
            act(job);
        }
    }

    /// Keeps the pinned jobs' shares from being lent.
    fn reserve(&mut self) {
        self.limiter.reserve(self.jobs.values().filter_map(|job| job.pinned).map(Share::get).sum());
    }

    fn decide(&mut self, now: Moment) -> Vec<Effect> {
        let mut frame = self.frame(now);
        let decision = self.policy.decide(&frame);
        let interval = decision.interval;
        self.patience = self.interval.max(interval);
        self.interval = interval;
        for (id, job) in self.jobs.iter_mut() {
            job.begin_frame(decision.limits.get(id).copied());
            // The policy has no say in what is held: asked for once is enough for a while.
            if job.pinned.is_none() {
                job.asked = None;
            }
        }
        self.node_mark = self.node_used;
        let views = self.views(now);
        for (job, view) in frame.jobs.iter_mut().zip(&views) {
            job.limit.held = view.silent;
        }
        self.limiter.decided(now.seconds(), &views, &decision.limits, &decision.waiting);
        let changes = self.changes(now, &views);
        let done = decision.terminate.iter().filter(|id| self.ending.insert(JobId::clone(id)));
        let done: Vec<JobId> = done.cloned().collect();
        let mut effects = Vec::with_capacity(EFFECTS);
        effects.push(Effect::Decided(Box::new((frame, decision))));
        effects.extend(changes);
        effects.extend((!done.is_empty()).then_some(Effect::End(done)));
        effects.push(Effect::WakeAt(now.after(interval)));
        effects
    }

    /// What the limiter changes by itself.
    fn look(&mut self, now: Moment) -> Vec<Effect> {
        let views = self.views(now);
        let changes = self.changes(now, &views);
        let mut free = self.jobs.values().filter(|job| job.pinned.is_none());
        self.settled = changes.is_none()
            && self.limiter.is_still()
            && free.all(|job| job.saw_only_since(self.happened));
        changes.into_iter().collect()
    }

    fn views(&mut self, now: Moment) -> Vec<View> {
        let (cpus, patience) = (self.cpus, self.patience);
        let view = |job: &mut Job| job.view(now, cpus, job.is_silent(now, patience));
        let mut views = Vec::with_capacity(self.jobs.len());
        views.extend(self.jobs.values_mut().filter(|job| job.pinned.is_none()).map(view));
        views
    }

    /// What is to be written, unless it was asked for before.
    fn changes(&mut self, now: Moment, views: &[View]) -> Option<Effect> {
        let effective = self.limiter.look(now.seconds(), views);
        let in_force = |id: &JobId| self.jobs.get(id).map(|job| job.in_force);
        let mut changes = self.limiter.changes(&effective, in_force);
        let least = self.limiter.least();
        changes.extend(self.jobs.values().filter_map(|job| job.hold(least)));
        limiter::order(&mut changes);
        let jobs = effective.len();
        changes.retain(|Change { job, to, .. }| {
            let Some(job) = self.jobs.get_mut(job) else { return false };
            let news = job.asked.is_none_or(|(at, asked)| {
                asked.is_far_from(*to, jobs) || now.seconds_since(at) >= RETRY
            });
            if news {
                job.asked = Some((now, *to));
            }
            news
        });
        if changes.is_empty() {
            return None;
        }
        // What others use beside them tells nothing of what they will use from now on.
        self.jobs.values_mut().for_each(Job::look_anew);
        Some(Effect::Set(changes))
    }

    /// What the policy is to see at `now`.
    fn frame(&self, now: Moment) -> Frame {
        let node =
            Node { usage: Usage { cpu: self.node_use(), ..Usage::default() }, ..self.node.clone() };
        let free = self.jobs.values().filter(|job| job.pinned.is_none());
        let mut jobs = Vec::with_capacity(self.jobs.len());
        jobs.extend(free.map(|job| job.in_frame(&self.node.name, self.cpus)));
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
