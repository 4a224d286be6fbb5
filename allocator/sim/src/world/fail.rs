//! Failures of nodes and jobs, and the work that survives them.

use paceline_policy::unit::counter;

use super::live::LiveJob;
use super::queue::SimEvent;
use super::{NodeState, World};
use crate::fluid::{Index, ROUNDING};
use crate::number::floor;
use crate::scenario::Failures;

impl<'a> World<'a> {
    pub(super) fn is_up(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(NodeState::is_up)
    }

    /// The failures of a node, if it has any.
    fn failures(&self, node: usize) -> Option<&'a Failures> {
        self.run.scenario.nodes.get(node)?.failures.as_ref()
    }

    /// Schedules the next failure of a working node.
    pub(super) fn schedule_failure(&mut self, node: usize) {
        let (Some(failures), Some(state)) = (self.failures(node), self.nodes.get_mut(node)) else {
            return;
        };
        if let Some(at) = failures.next(self.now, 0.0, &mut state.failures) {
            self.queue.push(at, SimEvent::Fail(node));
        }
    }

    /// Fails a node, with all jobs that run there.
    pub(super) fn fail(&mut self, node: usize) {
        let (Some(failures), Some(state)) = (self.failures(node), self.nodes.get_mut(node)) else {
            return;
        };
        let lost: Vec<Index> = state.fluid.jobs().collect();
        state.down_since = Some(self.now);
        let back = self.now + failures.down;
        self.queue.set(None, SimEvent::Sample(node));
        self.queue.set(None, SimEvent::Decide(node));
        self.queue.push(back, SimEvent::Recover(node));
        for index in lost {
            self.stop_process(index, node);
            let Some(live) = self.jobs.get_mut(index) else { continue };
            live.roll_back(self.now);
            let begins = if live.job.node.is_some() { back } else { self.now };
            live.node = live.job.node;
            let at = begins + live.resume_seconds();
            self.queue.push(at, SimEvent::Resume(index));
        }
        self.nodes_by_load.remove(&(0, node));
        self.schedule_goal(node);
        self.request_cluster_decision();
    }

    /// Brings a node up again, and places jobs without a node.
    pub(super) fn recover(&mut self, node: usize) {
        let Some(state) = self.nodes.get_mut(node) else { return };
        if let Some(since) = state.down_since.take() {
            state.down += self.now - since;
        }
        self.nodes_by_load.insert((0, node));
        self.schedule_failure(node);
        for index in std::mem::take(&mut self.stranded) {
            self.start_or_place(index);
        }
        self.node_changed(node);
    }

    /// A job's process crashes, and restarts on its node.
    pub(super) fn crash(&mut self, index: Index) {
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node.filter(|_| live.crash == Some(self.now)) else { return };
        self.stop_process(index, node);
        let Some(live) = self.jobs.get_mut(index) else { return };
        live.roll_back(self.now);
        let down = live.job.failures.as_ref().map_or(0.0, |failures| failures.down);
        let at = self.now + down + live.resume_seconds();
        self.moving.insert(index);
        self.queue.push(at, SimEvent::Resume(index));
        self.node_changed(node);
    }
}

impl LiveJob {
    /// When the process that begins now will crash; `None` if it will not.
    pub(super) fn next_crash(&mut self, now: f64) -> Option<f64> {
        self.job.failures.as_ref()?.next(now, self.job.arrive, &mut self.crashes)
    }

    /// Saves all work done in a checkpoint.
    pub(super) fn save_checkpoint(&mut self) {
        self.saved = self.before;
    }

    /// Discards the work since its last checkpoint.
    pub(super) fn roll_back(&mut self, now: f64) {
        let every = self.job.checkpoint.every;
        let kept =
            every.map_or(0.0, |every| every * counter(floor(self.before / every + ROUNDING)));
        let kept = self.saved.max(kept.min(self.before));
        self.outcome.failures += 1;
        *self.outcome.lost_work.get_or_insert(0.0) += self.before - kept;
        self.before = kept;
        self.restart_loss(now);
    }

    /// For how many seconds it stops until its next process resumes from its checkpoint.
    pub(super) fn resume_seconds(&mut self) -> f64 {
        let cost = self.job.checkpoint;
        if cost.start {
            self.start = self.job.start;
        }
        if cost.deviation > 0.0 {
            (cost.mean + cost.deviation * self.checkpoints.stream().normal()).max(0.0)
        } else {
            cost.mean
        }
    }
}
