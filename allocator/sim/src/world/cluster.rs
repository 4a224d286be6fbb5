//! The policy of a whole cluster: it sees the frames of all nodes as one, as a manager does that
//! is sent them by an agent on each.

use paceline_policy::frame::{Frame, Job};
use paceline_policy::{Effect, Event, Moment, Policy};

use super::live::Live;
use super::queue::What;
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
    /// Something happened that the cluster's policy should see.
    pub(super) fn hurry_all(&mut self) {
        let Some(cluster) = &self.cluster else { return };
        let at = cluster.decided.map_or(self.now, |at| self.now.max(at + COALESCE));
        self.queue.no_later(at, What::DecideAll);
    }

    pub(super) fn decide_all(&mut self) {
        let now = self.now;
        let frame = self.gather();
        let Some(cluster) = &mut self.cluster else { return };
        let decision = cluster.policy.decide(&frame);
        self.done.outcome.events += 1;
        self.done.outcome.decisions += 1;
        self.write_down(&frame, &decision);
        let placed = self.waiting.clone();
        self.bind(&decision.place);
        self.migrate(&decision.migrate);
        // The most that a job may have is not in force before its node has seen it.
        let runs =
            |live: &Live| live.node.and_then(|node| self.index(node, &live.job.id)).is_some();
        let mut placed = placed.into_iter().filter_map(|index| self.jobs.get(index));
        let soon = placed.any(|live| live.job.max.is_some() && runs(live)).then_some(COALESCE);
        if let Some(cluster) = &mut self.cluster {
            // What these have changed is no news to it.
            cluster.decided = Some(now);
            let wait = soon.unwrap_or(decision.interval);
            self.queue.set(Some(now + wait), What::DecideAll);
        }
    }

    /// What all nodes see, and the jobs that train on none: those that wait for one, and those that
    /// are on their way or start there again, which count where they go.
    fn gather(&mut self) -> Frame {
        let now = Moment::from_seconds(self.now);
        let mut all = Frame { t: self.now, ..Frame::default() };
        for node in 0..self.stations.len() {
            let Some(station) = self.stations.get_mut(node) else { continue };
            if !station.is_up() {
                continue;
            }
            station.observe(self.now, &mut self.jobs);
            for effect in station.engine.step(now, Event::Decide) {
                match effect {
                    Effect::Decided(decided) => {
                        let (frame, _) = *decided;
                        all.nodes.extend(frame.nodes);
                        all.jobs.extend(frame.jobs);
                    }
                    // The limiter of a node keeps to what jobs allow at most, whoever decides.
                    Effect::Set(changes) => self.write(node, changes),
                    Effect::End(_) | Effect::WakeAt(_) => {}
                }
            }
        }
        let here = self.stations.iter().flat_map(|station| station.fluid.jobs());
        let restarting = here.filter(|index| self.jobs.get(*index).is_some_and(Live::starts_again));
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
