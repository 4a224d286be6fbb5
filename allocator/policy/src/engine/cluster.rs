//! Several nodes under one policy: each node has an engine, and the policy sees their frames as one.
//!
//! Nodes are parts of one machine, or whole machines. For parts of a machine, shares in events and
//! effects are fractions of the machine, since limits are written and shown so. Inside, they are
//! fractions of the job's node, as everywhere in this crate. For whole machines, both are fractions of
//! the job's machine. Machines may join and leave.
//!
//! The policy moves jobs and does not set limits. The limiter of each node applies only the owners'
//! labels and commands, as if the policy had chosen no limit.
//!
//! A moving job counts on the node to which it moves. The simulator runs the same code.

use std::collections::BTreeMap;

use super::{Effect, Engine, Event, JobSpec, JobStatus};
use crate::frame::{Frame, Job};
use crate::limiter::{Change, Counters, LimiterSettings, Setting, SettingError};
use crate::params::Params;
use crate::policies::Unlimited;
use crate::policy::Policy;
use crate::unit::{JobId, Moment, Share};

/// One node: a part of a machine, or a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// How many CPUs it has.
    pub cpus: f64,
}

/// Nodes, their jobs and their policy.
#[derive(Debug)]
pub struct Cluster {
    policy: Box<dyn Policy>,
    /// By name.
    nodes: BTreeMap<String, Node>,
    /// The node of each running job.
    node_of: BTreeMap<JobId, String>,
    /// Jobs that are being moved, and their target nodes.
    moving: BTreeMap<JobId, String>,
}

#[derive(Debug)]
struct Node {
    engine: Engine,
    /// The fraction of the machine that it has.
    part: f64,
    /// Whether it takes no new jobs. Then frames contain its jobs but do not list the node itself.
    closed: bool,
}

impl Cluster {
    /// The nodes of a machine with `cpus` CPUs and `memory` bytes, which all of them share.
    pub fn new(
        cpus: f64,
        memory: f64,
        nodes: impl IntoIterator<Item = NodeSpec>,
        policy: Box<dyn Policy>,
    ) -> Self {
        let node = |spec: NodeSpec| (spec.name.clone(), Node::new(&spec, memory, spec.cpus / cpus));
        let nodes = nodes.into_iter().map(node).collect();
        Self { nodes, ..Self::for_machines(policy) }
    }

    /// A cluster of machines, empty at first.
    pub fn for_machines(policy: Box<dyn Policy>) -> Self {
        Self { policy, nodes: BTreeMap::new(), node_of: BTreeMap::new(), moving: BTreeMap::new() }
    }

    /// Adds a machine with `memory` bytes. A machine of that name stays unchanged.
    pub fn join(&mut self, spec: &NodeSpec, memory: f64) {
        self.nodes.entry(spec.name.clone()).or_insert_with(|| Node::new(spec, memory, 1.0));
    }

    /// Sets whether a machine takes new jobs; at first it does. Jobs may be moved away from a machine that
    /// does not.
    pub fn set_accepts_jobs(&mut self, name: &str, takes: bool) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.closed = !takes;
        }
    }

    /// Removes a machine and its jobs.
    pub fn leave(&mut self, name: &str) {
        self.nodes.remove(name);
        self.node_of.retain(|_, node| node != name);
    }

    /// Sets the limiter of every node. To be called before the first event.
    pub fn with_limiter(mut self, settings: LimiterSettings) -> Result<Self, SettingError> {
        self.set_limiter(settings)?;
        Ok(self)
    }

    pub(super) fn set_limiter(
        &mut self,
        settings: LimiterSettings,
    ) -> Result<LimiterSettings, SettingError> {
        let mut before = settings;
        for node in self.nodes.values_mut() {
            before = node.engine.set_limiter(settings)?;
        }
        Ok(before)
    }

    pub(super) fn set_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    pub(super) fn reacts_to_targets(&self) -> bool {
        self.policy.reacts_to_targets()
    }

    pub(super) fn awaits_batches(&self) -> bool {
        self.nodes.values().any(|node| node.engine.awaits_batches())
    }

    pub(super) fn counters(&self) -> Counters {
        let all = self.nodes.values().map(|node| node.engine.counters());
        all.fold(Counters::default(), |sum, one| Counters {
            slewed: sum.slewed + one.slewed,
            raised: sum.raised + one.raised,
            rolled_back: sum.rolled_back + one.rolled_back,
        })
    }

    pub(super) fn status(&self, id: &JobId) -> Option<JobStatus> {
        let node = self.nodes.get(self.node_of.get(id)?)?;
        let mut status = node.engine.status(id)?;
        status.chosen = node.outward(status.chosen);
        status.in_force.cap = node.outward(status.in_force.cap);
        status.pinned = status.pinned.map(|share| node.outward(share));
        Some(status)
    }

    pub(super) fn node_used(&mut self, now: Moment, name: &str, seconds: f64) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.apply(now, Event::NodeUsed(seconds));
        }
    }

    /// Handles one event that happened at `now`. Jobs on unknown nodes are ignored.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match event {
            Event::Decide => return self.decide(now),
            Event::Tick => {
                return Vec::from_iter(self.changes(now, |_, _| {}, &Event::Tick));
            }
            Event::Appeared(spec) => self.appeared(now, spec),
            Event::Gone(id) => {
                self.moving.remove(&id);
                self.remove(now, id);
            }
            Event::Moving(id, to) => {
                self.remove(now, id.clone());
                self.moving.insert(id, to);
            }
            Event::Pinned(id, share) => {
                self.forward(now, id, |node, id| Event::Pinned(id, node.inward(share)));
            }
            Event::Applied(id, Setting::Cap(share)) => self
                .forward(now, id, |node, id| Event::Applied(id, Setting::Cap(node.inward(share)))),
            Event::Applied(id, weight @ Setting::Weight(_)) => {
                self.forward(now, id, |_, id| Event::Applied(id, weight));
            }
            Event::Targets(id, targets) => {
                self.forward(now, id, |_, id| Event::Targets(id, targets));
            }
            Event::Guarded(id, guard, on) => {
                self.forward(now, id, |_, id| Event::Guarded(id, guard, on));
            }
            Event::Bounded(id, max) => self.forward(now, id, |node, id| {
                Event::Bounded(id, max.map(|share| node.inward(share)))
            }),
            Event::Reported(id, report) => {
                self.forward(now, id, |_, id| Event::Reported(id, report));
            }
            Event::Used(id, reading) => self.forward(now, id, |_, id| Event::Used(id, reading)),
            // Jobs of a cluster are not ended. The usage of the whole machine does not show the usage of
            // one part.
            Event::NotEnded(_) | Event::NodeUsed(_) => {}
        }
        Vec::new()
    }

    fn appeared(&mut self, now: Moment, spec: JobSpec) {
        let id = spec.id.clone();
        self.moving.remove(&id);
        self.remove(now, id.clone());
        let Some(name) = spec.node.clone() else { return };
        let Some(node) = self.nodes.get_mut(&name) else { return };
        let spec = JobSpec {
            in_force: node.inward(spec.in_force),
            min: spec.min.map(|share| node.inward(share)),
            max: spec.max.map(|share| node.inward(share)),
            ..spec
        };
        node.apply(now, Event::Appeared(spec));
        self.node_of.insert(id, name);
    }

    fn remove(&mut self, now: Moment, id: JobId) {
        let name = self.node_of.remove(&id);
        if let Some(node) = name.and_then(|name| self.nodes.get_mut(&name)) {
            node.apply(now, Event::Gone(id));
        }
    }

    fn forward(&mut self, now: Moment, id: JobId, event: impl FnOnce(&Node, JobId) -> Event) {
        let name = self.node_of.get(&id);
        if let Some(node) = name.and_then(|name| self.nodes.get_mut(name)) {
            let event = event(node, id);
            node.apply(now, event);
        }
    }

    fn decide(&mut self, now: Moment) -> Vec<Effect> {
        let mut frame = Frame { t: now.seconds(), ..Frame::default() };
        let changes = self.changes(
            now,
            |nodes, jobs| {
                frame.nodes.extend(nodes);
                frame.jobs.extend(jobs);
            },
            &Event::Decide,
        );
        let moving = |(id, to): (&JobId, &String)| Job {
            node: Some(to.as_str().into()),
            ..Job::new(id.clone())
        };
        frame.jobs.extend(self.moving.iter().map(moving));
        let decision = self.policy.decide(&frame);
        let interval = decision.interval;
        let mut effects = vec![Effect::Decided(Box::new((frame, decision)))];
        effects.extend(changes);
        effects.push(Effect::WakeAt(now.after(interval)));
        effects
    }

    /// The changes of all nodes' limiters. `see` receives the nodes and jobs of each engine's frame.
    fn changes(
        &mut self,
        now: Moment,
        mut see: impl FnMut(Vec<crate::frame::Node>, Vec<Job>),
        event: &Event,
    ) -> Option<Effect> {
        let mut all = Vec::new();
        for node in self.nodes.values_mut() {
            for effect in node.engine.step(now, event.clone()) {
                match effect {
                    Effect::Decided(mut decided) => {
                        decided.0.nodes.retain(|_| !node.closed);
                        see(decided.0.nodes, decided.0.jobs);
                    }
                    Effect::Set(changes) => {
                        all.extend(changes.into_iter().map(|change| node.change(change)));
                    }
                    // The cluster's policy sets the time of the next run.
                    Effect::End(_) | Effect::WakeAt(_) => {}
                }
            }
        }
        (!all.is_empty()).then_some(Effect::Set(all))
    }
}

impl Node {
    /// A node with `memory` bytes and this part of the machine's CPU capacity.
    fn new(spec: &NodeSpec, memory: f64, part: f64) -> Self {
        let free = Unlimited::new(&Params::default()).expect("the default parameters are valid");
        let engine = Engine::new(spec.name.clone(), spec.cpus, Some(memory), Box::new(free));
        Self { engine, part, closed: false }
    }

    /// Handles an event that has no effects.
    fn apply(&mut self, now: Moment, event: Event) {
        let effects = self.engine.step(now, event);
        debug_assert!(effects.is_empty(), "only a tick and a decision have effects");
    }

    /// Converts a share of the machine into one of the node. No limit stays no limit.
    fn inward(&self, share: Share) -> Share {
        if share.is_all() { share } else { Share::nearest(share.get() / self.part) }
    }

    /// Converts a share of the node into one of the machine.
    fn outward(&self, share: Share) -> Share {
        if share.is_all() { share } else { Share::nearest(share.get() * self.part) }
    }

    fn change(&self, change: Change) -> Change {
        let outward = |setting| match setting {
            Setting::Cap(share) => Setting::Cap(self.outward(share)),
            Setting::Weight(_) => setting,
        };
        Change { from: outward(change.from), to: outward(change.to), ..change }
    }
}
