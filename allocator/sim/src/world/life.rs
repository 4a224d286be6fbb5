//! A job's way from its arrival to its end.

use paceline_policy::Event;
use paceline_policy::limiter::Setting;

use super::live::Goal;
use super::queue::What;
use super::{COALESCE, World};
use crate::fluid::{Index, Tally};
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

    /// A process of a job begins on its node, with its start where it has one to do.
    pub(super) fn begin(&mut self, index: Index) {
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node else { return };
        if live.start.is_none() {
            self.train(index, node);
            return;
        }
        live.outcome.started.get_or_insert(self.now);
        self.enter(index, node);
        self.plan(node);
    }

    /// A process of a job trains from now on, and is seen.
    fn train(&mut self, index: Index, node: usize) {
        let now = self.now;
        let Some(live) = self.jobs.get_mut(index) else { return };
        live.train(now, &mut self.instances);
        live.count_loss(now, live.before);
        live.crash = live.next_crash(now);
        if let Some(at) = live.crash {
            self.queue.push(at, What::Crash(index));
        }
        self.enter(index, node);
        let (Some(live), Some(station)) = (self.jobs.get(index), self.stations.get_mut(node))
        else {
            return;
        };
        station.by_id.insert(live.job.id.clone(), index);
        station.tell(now, Event::Appeared(live.spec()));
        if live.has_own_weight() {
            let weight = Setting::Weight(live.cpu_shares);
            station.tell(now, Event::Applied(live.job.id.clone(), weight));
        }
        self.changed(node);
    }

    /// A process takes part in a node's CPU.
    fn enter(&mut self, index: Index, node: usize) {
        let (Some(live), Some(station)) = (self.jobs.get(index), self.stations.get_mut(node))
        else {
            return;
        };
        station.fluid.advance(self.now);
        let before = station.fluid.len();
        station.fluid.insert(index, live.party(station.cpus, Company::default()), live.goal());
        self.by_jobs.remove(&(before, node));
        self.by_jobs.insert((before + 1, node));
    }

    /// A process takes part in it no longer: what it did and used.
    fn leave(&mut self, index: Index, node: usize) -> Option<Tally> {
        let station = self.stations.get_mut(node)?;
        station.fluid.advance(self.now);
        let tally = station.fluid.remove(index)?;
        let left = station.fluid.len();
        self.by_jobs.remove(&(left + 1, node));
        self.by_jobs.insert((left, node));
        Some(tally)
    }

    /// Goals of jobs on a node are reached.
    pub(super) fn goals(&mut self, node: usize) {
        let (now, mut is_news) = (self.now, false);
        let Some(station) = self.stations.get_mut(node) else { return };
        station.fluid.advance(now);
        let soon = now + ROUNDING;
        while let Some(station) = self.stations.get_mut(node) {
            let Some((_, index)) = station.fluid.next().filter(|(at, _)| *at <= soon) else {
                break;
            };
            let Some(live) = self.jobs.get_mut(index) else { break };
            if live.start.take().is_some() {
                is_news = true;
                self.leave(index, node);
                self.train(index, node);
                continue;
            }
            let goal = live.reach(now);
            station.fluid.reached(index, live.goal());
            is_news |= goal == Some(Goal::End) || station.engine.minds_targets();
            if goal == Some(Goal::End) {
                self.done.outcome.events += 1;
                self.depart(index, node);
                self.over(index);
            }
        }
        if is_news {
            self.changed(node);
        } else {
            self.plan(node);
        }
    }

    /// A job's process on a node ends: what it has done is counted.
    pub(super) fn depart(&mut self, index: Index, node: usize) {
        let now = self.now;
        let rate = self.stations.get(node).map_or(0.0, |station| station.fluid.rate_of(index));
        let tally = self.leave(index, node);
        let (Some(station), Some(live)) = (self.stations.get_mut(node), self.jobs.get_mut(index))
        else {
            return;
        };
        if let Some(tally) = tally {
            live.before = live.done(tally);
            live.count_loss(now, live.before);
        }
        if live.start.is_some() {
            return;
        }
        live.outcome.batch_latency = Some(live.job.batch / rate);
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
