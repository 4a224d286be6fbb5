//! Several nodes under one policy: an engine watches over each, and the policy sees their frames as
//! one.
//!
//! Nodes are parts of one machine, or machines of their own. Of parts, shares are fractions of the
//! machine outside, since limits are written and shown so, and of a job's node inside, as everywhere
//! in this crate. Of machines, they are fractions of the job's machine on both sides; machines come
//! and go.
//!
//! The policy moves jobs, and leaves limits alone: what the limiter of a node does, it does by the
//! words of the jobs' owners and by orders, with every job free.

use std::collections::BTreeMap;

use super::{Account, Effect, Engine, Event, JobSpec};
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
    /// Where each job runs.
    homes: BTreeMap<JobId, String>,
    /// Jobs that run nowhere for now, and where they go.
    moving: BTreeMap<JobId, String>,
}

#[derive(Debug)]
struct Node {
    engine: Engine,
    /// How much of the machine it is.
    part: f64,
    /// Whether it takes no new jobs: policies see those that it has, and the node itself in no list.
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
        Self { nodes, ..Self::of_machines(policy) }
    }

    /// A cluster of machines, of which there is none yet.
    pub fn of_machines(policy: Box<dyn Policy>) -> Self {
        Self { policy, nodes: BTreeMap::new(), homes: BTreeMap::new(), moving: BTreeMap::new() }
    }

    /// A machine with `memory` bytes has come. One that is known stays as it is.
    pub fn join(&mut self, spec: &NodeSpec, memory: f64) {
        self.nodes.entry(spec.name.clone()).or_insert_with(|| Node::new(spec, memory, 1.0));
    }

    /// Whether a machine takes new jobs, as it does at first. What runs on one that does not may be
    /// moved from there.
    pub fn takes_jobs(&mut self, name: &str, takes: bool) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.closed = !takes;
        }
    }

    /// A machine has gone, and with it what ran there.
    pub fn part_with(&mut self, name: &str) {
        self.nodes.remove(name);
        self.homes.retain(|_, home| home != name);
    }

    /// Sets the limiter of every node. Nothing may have happened yet.
    pub fn limited_by(mut self, settings: LimiterSettings) -> Result<Self, SettingError> {
        self.limit_by(settings)?;
        Ok(self)
    }

    pub(super) fn limit_by(
        &mut self,
        settings: LimiterSettings,
    ) -> Result<LimiterSettings, SettingError> {
        let mut before = settings;
        for node in self.nodes.values_mut() {
            before = node.engine.limit_by(settings)?;
        }
        Ok(before)
    }

    pub(super) fn decided_by(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    pub(super) fn minds_targets(&self) -> bool {
        self.policy.minds_targets()
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

    pub(super) fn account(&self, id: &JobId) -> Option<Account> {
        let node = self.nodes.get(self.homes.get(id)?)?;
        let mut account = node.engine.account(id)?;
        account.chosen = node.outward(account.chosen);
        account.in_force.cap = node.outward(account.in_force.cap);
        account.pinned = account.pinned.map(|share| node.outward(share));
        Some(account)
    }

    pub(super) fn node_used(&mut self, now: Moment, name: &str, seconds: f64) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.tell(now, Event::NodeUsed(seconds));
        }
    }

    /// Takes in one event that happened at `now`. A job that is on none of the nodes is not known.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match event {
            Event::Decide => return self.decide(now),
            Event::Look => {
                return Vec::from_iter(self.changes(now, |_, _| {}, &Event::Look));
            }
            Event::Appeared(spec) => self.appeared(now, spec),
            Event::Gone(id) => {
                self.moving.remove(&id);
                self.leave(now, id);
            }
            Event::Moving(id, to) => {
                self.leave(now, id.clone());
                self.moving.insert(id, to);
            }
            Event::Pinned(id, share) => {
                self.at_home(now, id, |node, id| Event::Pinned(id, node.inward(share)));
            }
            Event::Applied(id, Setting::Cap(share)) => self
                .at_home(now, id, |node, id| Event::Applied(id, Setting::Cap(node.inward(share)))),
            Event::Applied(id, weight @ Setting::Weight(_)) => {
                self.at_home(now, id, |_, id| Event::Applied(id, weight));
            }
            Event::Targets(id, targets) => {
                self.at_home(now, id, |_, id| Event::Targets(id, targets));
            }
            Event::Guarded(id, guard, on) => {
                self.at_home(now, id, |_, id| Event::Guarded(id, guard, on));
            }
            Event::Reported(id, report) => {
                self.at_home(now, id, |_, id| Event::Reported(id, report));
            }
            Event::Used(id, reading) => self.at_home(now, id, |_, id| Event::Used(id, reading)),
            // What the whole machine uses says nothing of a part of it.
            Event::NodeUsed(_) => {}
        }
        Vec::new()
    }

    fn appeared(&mut self, now: Moment, spec: JobSpec) {
        let id = spec.id.clone();
        self.moving.remove(&id);
        self.leave(now, id.clone());
        let Some(home) = spec.node.clone() else { return };
        let Some(node) = self.nodes.get_mut(&home) else { return };
        let spec = JobSpec {
            in_force: node.inward(spec.in_force),
            min: spec.min.map(|share| node.inward(share)),
            max: spec.max.map(|share| node.inward(share)),
            ..spec
        };
        node.tell(now, Event::Appeared(spec));
        self.homes.insert(id, home);
    }

    fn leave(&mut self, now: Moment, id: JobId) {
        let home = self.homes.remove(&id);
        if let Some(node) = home.and_then(|home| self.nodes.get_mut(&home)) {
            node.tell(now, Event::Gone(id));
        }
    }

    fn at_home(&mut self, now: Moment, id: JobId, event: impl FnOnce(&Node, JobId) -> Event) {
        let home = self.homes.get(&id);
        if let Some(node) = home.and_then(|home| self.nodes.get_mut(home)) {
            let event = event(node, id);
            node.tell(now, event);
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

    /// What the limiters of all nodes change; `see` is shown what each engine sees.
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
                    // When to run again is the cluster's policy's to say.
                    Effect::End(_) | Effect::WakeAt(_) => {}
                }
            }
        }
        (!all.is_empty()).then_some(Effect::Set(all))
    }
}

impl Node {
    /// One with `memory` bytes, whose shares are this part of what they are outside.
    fn new(spec: &NodeSpec, memory: f64, part: f64) -> Self {
        let free = Unlimited::new(&Params::default()).expect("no parameter is none that fails");
        let engine = Engine::new(spec.name.clone(), spec.cpus, Some(memory), Box::new(free));
        Self { engine, part, closed: false }
    }

    /// Takes in an event that asks for nothing.
    fn tell(&mut self, now: Moment, event: Event) {
        let effects = self.engine.step(now, event);
        debug_assert!(effects.is_empty(), "only a look and a decision have effects");
    }

    /// A share of the machine as one of the node. Neither is a limit where it is all.
    fn inward(&self, share: Share) -> Share {
        if share.is_all() { share } else { Share::nearest(share.get() / self.part) }
    }

    /// A share of the node as one of the machine.
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
