//! The policy of a whole cluster. It sees the frames of all nodes as one, like a manager that
//! receives them from an agent on each node.

use paceline_policy::frame::{Frame, Job};
use paceline_policy::{Effect, Event, Moment, Policy};

use super::live::LiveJob;
use super::queue::SimEvent;
use super::{COALESCE, World};

#[derive(Debug)]
pub(super) struct Cluster {
    policy: Box<dyn Policy>,
    decided: Option<f64>,
}

impl Cluster {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { policy, decided: None }
    }
}

impl World<'_> {
    /// Schedules a decision of the cluster's policy, since something changed.
    pub(super) fn request_cluster_decision(&mut self) {
        let Some(cluster) = &self.cluster else { return };
        let at = cluster.decided.map_or(self.now, |at| self.now.max(at + COALESCE));
        self.queue.no_later(at, SimEvent::DecideAll);
    }

    pub(super) fn decide_all(&mut self) {
        let now = self.now;
        let frame = self.gather();
        let Some(cluster) = &mut self.cluster else { return };
        let decision = cluster.policy.decide(&frame);
        self.done.outcome.events += 1;
        self.done.outcome.decisions += 1;
        self.record(&frame, &decision);
        let placed = self.waiting.clone();
        self.bind(&decision.place);
        self.migrate(&decision.migrate);
        // A job's maximum share is not in force before its node has observed the job.
        let runs =
            |live: &LiveJob| live.node.and_then(|node| self.index(node, &live.job.id)).is_some();
        let mut placed = placed.into_iter().filter_map(|index| self.jobs.get(index));
        let soon = placed.any(|live| live.job.max.is_some() && runs(live)).then_some(COALESCE);
        if let Some(cluster) = &mut self.cluster {
            // These changes do not cause another decision.
            cluster.decided = Some(now);
            let wait = soon.unwrap_or(decision.interval);
            self.queue.set(Some(now + wait), SimEvent::DecideAll);
        }
    }

    /// The frames of all nodes, and the jobs that train on none. These are the jobs that wait for a
    /// node, and those that are being moved or start again, which count at their targets.
    fn gather(&mut self) -> Frame {
        let now = Moment::from_seconds(self.now);
        let mut all = Frame { t: self.now, ..Frame::default() };
        for node in 0..self.nodes.len() {
            let Some(state) = self.nodes.get_mut(node) else { continue };
            if !state.is_up() {
                continue;
            }
            state.observe(self.now, &mut self.jobs);
            for effect in state.engine.step(now, Event::Decide) {
                match effect {
                    Effect::Decided(decided) => {
                        let (frame, _) = *decided;
                        all.nodes.extend(frame.nodes);
                        all.jobs.extend(frame.jobs);
                    }
                    // A node's limiter enforces the maximum shares of jobs under every policy.
                    Effect::Set(changes) => self.write_limits(node, changes),
                    Effect::End(_) | Effect::WakeAt(_) => {}
                }
            }
        }
        let here = self.nodes.iter().flat_map(|state| state.fluid.jobs());
        let restarting =
            here.filter(|index| self.jobs.get(*index).is_some_and(LiveJob::starts_again));
        let waiting = self.waiting.iter().chain(&self.moving).copied();
        for index in waiting.chain(restarting) {
            let Some(live) = self.jobs.get(index) else { continue };
            let node = live.node.and_then(|node| self.run.scenario.nodes.get(node));
            let job = Job::new(live.job.id.clone());
            all.jobs.push(Job { node: node.map(|node| node.name.as_str().into()), ..job });
        }
        all
    }
}
