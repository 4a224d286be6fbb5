//! A job from its arrival to its end.

use paceline_policy::Event;
use paceline_policy::limiter::Setting;

use super::live::Goal;
use super::queue::SimEvent;
use super::{COALESCE, World};
use crate::fluid::{Index, Tally};
use crate::scenario::Competition;

/// A goal this near, in seconds, counts as reached: the difference is a rounding error.
const ROUNDING: f64 = 1e-9;

impl World<'_> {
    pub(super) fn arrive(&mut self, index: Index) {
        self.done.outcome.events += 1;
        self.jobs.arrive(index);
        self.start_or_place(index);
    }

    /// Starts a job on its node, or places it if it has none.
    pub(super) fn start_or_place(&mut self, index: Index) {
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

    /// Begins a process of a job on its node, with its start if it has one.
    pub(super) fn begin(&mut self, index: Index) {
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node else { return };
        if live.start.is_none() {
            self.train(index, node);
            return;
        }
        live.outcome.started.get_or_insert(self.now);
        self.enter(index, node);
        self.schedule_goal(node);
    }

    /// Lets a process of a job train and be observed from now on.
    fn train(&mut self, index: Index, node: usize) {
        let now = self.now;
        let Some(live) = self.jobs.get_mut(index) else { return };
        live.train(now, &mut self.instances);
        live.count_loss(now, live.before);
        live.crash = live.next_crash(now);
        if let Some(at) = live.crash {
            self.queue.push(at, SimEvent::Crash(index));
        }
        self.enter(index, node);
        let (Some(live), Some(state)) = (self.jobs.get(index), self.nodes.get_mut(node)) else {
            return;
        };
        state.by_id.insert(live.job.id.clone(), index);
        state.notify(now, Event::Appeared(live.spec()));
        if live.has_own_weight() {
            let weight = Setting::Weight(live.cpu_shares);
            state.notify(now, Event::Applied(live.job.id.clone(), weight));
        }
        self.node_changed(node);
    }

    /// Adds a process to a node's CPU.
    fn enter(&mut self, index: Index, node: usize) {
        let (Some(live), Some(state)) = (self.jobs.get(index), self.nodes.get_mut(node)) else {
            return;
        };
        state.fluid.advance(self.now);
        let before = state.fluid.len();
        state.fluid.insert(index, live.demand(state.cpus, Competition::default()), live.goal());
        self.nodes_by_load.remove(&(before, node));
        self.nodes_by_load.insert((before + 1, node));
    }

    /// Removes a process from a node's CPU, and returns what it did and used.
    fn leave(&mut self, index: Index, node: usize) -> Option<Tally> {
        let state = self.nodes.get_mut(node)?;
        state.fluid.advance(self.now);
        let tally = state.fluid.remove(index)?;
        let left = state.fluid.len();
        self.nodes_by_load.remove(&(left + 1, node));
        self.nodes_by_load.insert((left, node));
        Some(tally)
    }

    /// Handles the goals that jobs on a node have reached.
    pub(super) fn goals(&mut self, node: usize) {
        let (now, mut is_news) = (self.now, false);
        let Some(state) = self.nodes.get_mut(node) else { return };
        state.fluid.advance(now);
        let soon = now + ROUNDING;
        while let Some(state) = self.nodes.get_mut(node) {
            let Some((_, index)) = state.fluid.next().filter(|(at, _)| *at <= soon) else {
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
            state.fluid.reached(index, live.goal());
            is_news |= goal == Some(Goal::End) || state.engine.reacts_to_targets();
            if goal == Some(Goal::End) {
                self.done.outcome.events += 1;
                self.stop_process(index, node);
                self.finish_job(index);
            }
        }
        if is_news {
            self.node_changed(node);
        } else {
            self.schedule_goal(node);
        }
    }

    /// Ends a job's process on a node, and counts its work.
    pub(super) fn stop_process(&mut self, index: Index, node: usize) {
        let now = self.now;
        let rate = self.nodes.get(node).map_or(0.0, |state| state.fluid.rate_of(index));
        let tally = self.leave(index, node);
        let (Some(state), Some(live)) = (self.nodes.get_mut(node), self.jobs.get_mut(index)) else {
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
        state.by_id.remove(&live.job.id);
        live.crash = None;
        state.notify(now, Event::Gone(live.job.id.clone()));
    }

    /// Records that a job is finished.
    pub(super) fn finish_job(&mut self, index: Index) {
        self.jobs.finish(index);
        self.left -= 1;
        self.last_end = self.now;
    }

    /// Schedules a decision of a node's policy, since something changed there.
    pub(super) fn node_changed(&mut self, node: usize) {
        self.schedule_goal(node);
        if self.cluster.is_some() {
            self.request_cluster_decision();
            return;
        }
        let Some(state) = self.nodes.get(node).filter(|state| state.is_up()) else {
            return;
        };
        let at = state.decided.map_or(self.now, |at| self.now.max(at + COALESCE));
        self.queue.no_later(at, SimEvent::Decide(node));
    }

    /// Schedules the node's next goal.
    pub(super) fn schedule_goal(&mut self, node: usize) {
        let Some(state) = self.nodes.get_mut(node) else { return };
        if self.competition_matters {
            state.update_demands(&self.jobs);
        }
        let next = state.fluid.next().map(|(at, _)| at.max(self.now));
        self.queue.set(next, SimEvent::Goal(node));
    }
}
