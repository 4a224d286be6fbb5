//! A job's way from its arrival to its end.

use paceline_policy::Event;
use paceline_policy::limiter::Setting;

use super::live::Goal;
use super::queue::What;
use super::{COALESCE, World};
use crate::fluid::Index;
use crate::scenario::Company;

/// A goal that is so near, in seconds, is reached: that is rounding.
const ROUNDING: f64 = 1e-9;

impl World<'_> {
    pub(super) fn arrive(&mut self, index: Index) {
        self.done.outcome.events += 1;
        self.jobs.arrive(index);
        self.settle(index);
    }

    /// A job is to run: on its node, or on one that is to be chosen.
    pub(super) fn settle(&mut self, index: Index) {
        self.moving.remove(&index);
        let Some(live) = self.jobs.get(index) else { return };
        if live.node.is_some_and(|node| self.is_up(node)) {
            self.begin(index);
        } else if live.job.node.is_some() {
            self.strand(index);
        } else {
            self.place(index);
        }
    }

    /// A process of a job begins on its node.
    pub(super) fn begin(&mut self, index: Index) {
        let now = self.now;
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node else { return };
        let Some(station) = self.stations.get_mut(node) else { return };
        live.begin(now, &mut self.instances);
        live.count_loss(now, live.before);
        live.crash = live.next_crash(now);
        if let Some(at) = live.crash {
            self.queue.push(at, What::Crash(index));
        }
        station.fluid.advance(now);
        let before = station.fluid.len();
        let party = live.party(station.cpus, Company::default());
        station.fluid.insert(index, party, live.goal());
        station.by_id.insert(live.job.id.clone(), index);
        self.by_jobs.remove(&(before, node));
        self.by_jobs.insert((before + 1, node));
        station.tell(now, Event::Appeared(live.spec()));
        if live.has_own_weight() {
            let weight = Setting::Weight(live.cpu_shares);
            station.tell(now, Event::Applied(live.job.id.clone(), weight));
        }
        self.changed(node);
    }

    /// Goals of jobs on a node are reached.
    pub(super) fn goals(&mut self, node: usize) {
        let now = self.now;
        let Some(station) = self.stations.get_mut(node) else { return };
        station.fluid.advance(now);
        let soon = now + ROUNDING;
        while let Some(station) = self.stations.get_mut(node) {
            let Some((_, index)) = station.fluid.next().filter(|(at, _)| *at <= soon) else {
                break;
            };
            let Some(live) = self.jobs.get_mut(index) else { break };
            let goal = live.reach(now);
            station.fluid.reached(index, live.goal());
            if goal == Some(Goal::End) {
                self.done.outcome.events += 1;
                self.depart(index, node);
                self.over(index);
            }
        }
        self.changed(node);
    }

    /// A job's process on a node ends: what it has done is counted.
    pub(super) fn depart(&mut self, index: Index, node: usize) {
        let now = self.now;
        let (Some(station), Some(live)) = (self.stations.get_mut(node), self.jobs.get_mut(index))
        else {
            return;
        };
        station.fluid.advance(now);
        live.outcome.batch_latency = Some(live.job.batch / station.fluid.rate_of(index));
        if let Some(tally) = station.fluid.remove(index) {
            let left = station.fluid.len();
            self.by_jobs.remove(&(left + 1, node));
            self.by_jobs.insert((left, node));
            live.before += tally.work;
            live.count_loss(now, live.before);
        }
        station.by_id.remove(&live.job.id);
        live.crash = None;
        station.tell(now, Event::Gone(live.job.id.clone()));
    }

    /// A job is over.
    pub(super) fn over(&mut self, index: Index) {
        self.jobs.over(index);
        self.left -= 1;
        self.last_end = self.now;
    }

    /// Something happened on a node that its policy should see.
    pub(super) fn changed(&mut self, node: usize) {
        self.plan(node);
        if self.cluster.is_some() {
            self.hurry_all();
            return;
        }
        let Some(station) = self.stations.get(node).filter(|station| station.is_up()) else {
            return;
        };
        let at = station.decided.map_or(self.now, |at| self.now.max(at + COALESCE));
        self.queue.no_later(at, What::Decide(node));
    }

    /// Notes when the node's next goal is due.
    pub(super) fn plan(&mut self, node: usize) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if self.company_matters {
            station.fit_in(&self.jobs);
        }
        let next = station.fluid.next().map(|(at, _)| at.max(self.now));
        self.queue.set(next, What::Goal(node));
    }
}
