//! The state machine around a policy: events in, effects out, time as an argument.
//!
//! The engine records the observations of every job. For a decision it builds a [`Frame`], asks the
//! policy and then the [`Limiter`], and returns effects. A limit counts as changed only after
//! [`Event::Applied`], since the container engine may refuse a write.
//!
//! Between decisions, [`Event::Tick`] is a tick of the limiter alone: unused CPU is lent and taken
//! back, and guards act, without the policy.
//!
//! What the policy chose and what is in force are separate figures. A choice too small to be written
//! keeps adding up until it is worth a write.
//!
//! A pinned job is absent from frames, and the limiter leaves it alone. The engine repeats the
//! request for its share until that is in force, and lends nothing of it. A released job is
//! forgotten. Targets set by an order override those of labels, and labels override the endpoint.
//!
//! Policy and limiter can be replaced while jobs run (`replace`). The new policy sees jobs as they
//! are, with no earlier choice of its own. Frames recorded across the change replay under neither
//! policy.

mod any;
mod batch_clock;
mod cluster;
mod job;
mod job_status;
mod reading;
mod replace;
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

pub use any::AnyEngine;
pub use cluster::{Cluster, NodeSpec};
pub use job_status::JobStatus;
pub use reading::Reading;
pub use report::{Report, Steps};

/// A refused change is requested again by the next decision, and by ticks after this many seconds.
const RETRY_SECONDS: f64 = 5.0;

/// The largest number of effects of one decision: one of each kind.
const MAX_EFFECTS: usize = 4;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A managed job has been found running.
    Appeared(JobSpec),
    /// It no longer runs, or is no longer managed.
    Gone(JobId),
    /// It is being moved to this node and runs nowhere meanwhile. It will appear again there. A single
    /// node treats it as gone.
    Moving(JobId, String),
    /// Its endpoint was read.
    Reported(JobId, Report),
    /// Its use of resources was read.
    Used(JobId, Reading),
    /// A setting is in force. Until a weight is reported, the default is assumed.
    Applied(JobId, Setting),
    /// It is held at this share from now on, whatever the policy chooses. The policy no longer sees it,
    /// and its share is not lent. When it appears again, the pin is gone.
    Pinned(JobId, Share),
    /// Targets that override all others are set; those that are `None` stay unchanged.
    Targets(JobId, Targets),
    /// A guard is switched on or off for this job.
    Guarded(JobId, Guard, bool),
    /// The largest share that its owner allows has changed.
    Bounded(JobId, Option<Share>),
    /// It could not be ended at its objective: the next decision asks for its end again.
    NotEnded(JobId),
    /// The CPU time that everything on the node has used since it booted was read, in seconds.
    NodeUsed(f64),
    /// All current readings have been delivered: a tick of the limiter.
    Tick,
    /// It is time for a run of the policy.
    Decide,
}

impl Event {
    /// Whether it is a reading or a tick, so that nothing else has changed.
    fn is_reading(&self) -> bool {
        matches!(self, Self::Reported(..) | Self::Used(..) | Self::NodeUsed(_) | Self::Tick)
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Write these settings, in this order.
    Set(Vec<Change>),
    /// The policy ran: its frame and its decision.
    Decided(Box<(Frame, Decision)>),
    /// End these jobs: they have reached their objective. Emitted once for each job, and again after
    /// [`Event::NotEnded`].
    End(Vec<JobId>),
    /// Ask for the next run of the policy at this moment, if nothing happens before.
    WakeAt(Moment),
}

/// What is known about a job before its first reading.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Its id.
    pub id: JobId,
    /// The node that it runs on, if there are several nodes.
    pub node: Option<String>,
    /// Whether it began during this run, so that its counters started at 0.
    pub fresh: bool,
    /// The cap in force now.
    pub in_force: Share,
    /// The smallest share that its owner allows.
    pub min: Option<Share>,
    /// The largest share that its owner allows.
    pub max: Option<Share>,
    /// Its weight relative to other jobs.
    pub weight: f64,
    /// The CPU weight that its owner gave its container.
    pub own_weight: u64,
    /// How long its container had been running when it appeared, in seconds; `None` if unknown.
    pub age: Option<f64>,
    /// The allowed slowdown compared with an equal share: at least 1.
    pub max_slowdown: Option<f64>,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// Its whole work in seconds of the whole node, if its owner declares it.
    pub work: Option<f64>,
    /// The direction of its loss, if its owner sets it. It overrides the endpoint's.
    pub direction: Option<Direction>,
    /// Its targets, if its owner sets them. They override the endpoint's.
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
    /// The longer of the policy's last two intervals, in seconds: the scale for a job's silence.
    silence_interval: f64,
    /// The time of the last event that was not a reading.
    last_event: Moment,
    /// Whether the last tick changed nothing and used only readings from after that event.
    stable: bool,
    /// Jobs whose end was already requested.
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
            silence_interval: 0.0,
            last_event: Moment::default(),
            stable: false,
            ending: BTreeSet::new(),
        }
    }

    /// Sets the limiter. To be called before the first event.
    pub fn with_limiter(self, settings: LimiterSettings) -> Result<Self, SettingError> {
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

    /// Whether a decision is due when a job has [reached a target](Policy::reacts_to_targets).
    pub fn reacts_to_targets(&self) -> bool {
        self.policy.reacts_to_targets()
    }

    /// Whether a job has a batch target but no measured batch since the last frame. Then another report is
    /// needed before the next frame.
    pub fn awaits_batches(&self) -> bool {
        self.jobs.values().any(Job::awaits_batches)
    }

    /// Whether readings and ticks can matter before the next decision, if every job continues as at `now`.
    /// They do in four cases. A guard is on for some job. A job is pinned. A job with a batch target has no
    /// batch measured since the last frame. Or shares are lent, and the loans are not stable yet.
    pub fn needs_ticks(&self, now: Moment) -> bool {
        let guarded = |job: &Job| {
            let guards = self.limiter.guards(job.switches, job.spec.max_slowdown);
            job.awaits_batches() || job.pinned.is_some() || !guards.is_empty()
        };
        self.jobs.values().any(guarded) || self.limiter.lends() && !self.is_stable(now)
    }

    /// Whether further ticks change nothing, and no job becomes silent before the next decision.
    fn is_stable(&self, now: Moment) -> bool {
        let next = now.after(self.interval);
        self.stable && !self.jobs.values().any(|job| job.is_silent(next, self.silence_interval))
    }

    /// Handles one event that happened at `now`. Events must come in the order of their time.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        if !event.is_reading() {
            (self.last_event, self.stable) = (now, false);
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
                self.with_job(&id, |job| (job.pinned, job.asked) = (Some(share), None));
                self.reserve();
            }
            Event::Targets(id, targets) => self.with_job(&id, |job| job.order_targets(targets)),
            Event::Guarded(id, guard, on) => self.with_job(&id, |job| job.switches.set(guard, on)),
            Event::Bounded(id, max) => self.with_job(&id, |job| job.spec.max = max),
            Event::Reported(id, report) => self.with_job(&id, |job| job.reported(now, report)),
            Event::Used(id, reading) => self.with_job(&id, |job| job.used(now, reading)),
            Event::Applied(id, setting) => self.with_job(&id, |job| job.applied(setting)),
            Event::NotEnded(id) => {
                self.ending.remove(&id);
            }
            Event::NodeUsed(seconds) => self.node_used = Some((now, seconds)),
            Event::Tick => return self.tick(now),
            Event::Decide => return self.decide(now),
        }
        Vec::new()
    }

    fn with_job(&mut self, id: &JobId, act: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.get_mut(id) {
            act(job);
        }
    }

    /// Reserves the pinned jobs' shares, so that they are not lent.
    fn reserve(&mut self) {
        self.limiter.reserve(self.jobs.values().filter_map(|job| job.pinned).map(Share::get).sum());
    }

    fn decide(&mut self, now: Moment) -> Vec<Effect> {
        let mut frame = self.frame(now);
        let decision = self.policy.decide(&frame);
        let interval = decision.interval;
        self.silence_interval = self.interval.max(interval);
        self.interval = interval;
        for (id, job) in self.jobs.iter_mut() {
            job.begin_frame(decision.limits.get(id).copied());
            // A decision does not affect pins, so a pending request for a pin stays valid.
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
        let mut effects = Vec::with_capacity(MAX_EFFECTS);
        effects.push(Effect::Decided(Box::new((frame, decision))));
        effects.extend(changes);
        effects.extend((!done.is_empty()).then_some(Effect::End(done)));
        effects.push(Effect::WakeAt(now.after(interval)));
        effects
    }

    /// The changes that the limiter makes between decisions.
    fn tick(&mut self, now: Moment) -> Vec<Effect> {
        let views = self.views(now);
        let changes = self.changes(now, &views);
        let mut free = self.jobs.values().filter(|job| job.pinned.is_none());
        self.stable = changes.is_none()
            && self.limiter.is_unchanged()
            && free.all(|job| job.sampled_only_since(self.last_event));
        changes.into_iter().collect()
    }

    fn views(&mut self, now: Moment) -> Vec<View> {
        let (cpus, silence_interval) = (self.cpus, self.silence_interval);
        let view = |job: &mut Job| job.view(now, cpus, job.is_silent(now, silence_interval));
        let mut views = Vec::with_capacity(self.jobs.len());
        views.extend(self.jobs.values_mut().filter(|job| job.pinned.is_none()).map(view));
        views
    }

    /// The changes to write, except those that were requested a short time ago.
    fn changes(&mut self, now: Moment, views: &[View]) -> Option<Effect> {
        let effective = self.limiter.tick(now.seconds(), views);
        let pinned = self.jobs.values().filter(|job| job.pinned.is_some());
        self.limiter.balance(pinned.map(Job::spare_weight).sum());
        let in_force = |id: &JobId| self.jobs.get(id).map(|job| job.in_force);
        let mut changes = self.limiter.changes(&effective, in_force);
        let least = self.limiter.least();
        changes.extend(self.jobs.values().filter_map(|job| job.hold(least)));
        limiter::order(&mut changes);
        changes.retain(|Change { job, to, .. }| {
            let Some(job) = self.jobs.get_mut(job) else { return false };
            let news = job.asked.is_none_or(|(at, asked)| {
                is_other_request(asked, *to) || now.seconds_since(at) >= RETRY_SECONDS
            });
            if news {
                job.asked = Some((now, *to));
            }
            news
        });
        if changes.is_empty() {
            return None;
        }
        // Usage measured beside the old limits does not predict usage beside the new ones.
        self.jobs.values_mut().for_each(Job::restart_window);
        Some(Effect::Set(changes))
    }

    /// The policy's input at `now`.
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

/// Whether a setting is another one than was `asked` for. Weights count to the last one, since their
/// sum must be right.
fn is_other_request(asked: Setting, to: Setting) -> bool {
    match (asked, to) {
        (Setting::Weight(asked), Setting::Weight(to)) => asked != to,
        _ => asked.is_worth_changing_to(to, 0),
    }
}

#[cfg(test)]
mod tests;
