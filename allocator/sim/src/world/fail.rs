//! Nodes that fail and jobs that crash, and what is left of the work then.

use paceline_policy::unit::counter;

use super::live::Live;
use super::queue::What;
use super::{Station, World};
use crate::fluid::{Index, ROUNDING};
use crate::number::floor;
use crate::scenario::Failures;

impl<'a> World<'a> {
    pub(super) fn is_up(&self, node: usize) -> bool {
        self.stations.get(node).is_some_and(Station::is_up)
    }

    /// When a node fails, if it ever does.
    fn failures(&self, node: usize) -> Option<&'a Failures> {
        self.run.scenario.nodes.get(node)?.failures.as_ref()
    }

    /// Notes when a node that works fails next.
    pub(super) fn expect_failure(&mut self, node: usize) {
        let (Some(failures), Some(station)) = (self.failures(node), self.stations.get_mut(node))
        else {
            return;
        };
        if let Some(at) = failures.next(self.now, 0.0, &mut station.failures) {
            self.queue.push(at, What::Fail(node));
        }
    }

    /// A node fails, and all that runs there with it.
    pub(super) fn fail(&mut self, node: usize) {
        let (Some(failures), Some(station)) = (self.failures(node), self.stations.get_mut(node))
        else {
            return;
        };
        let lost: Vec<Index> = station.fluid.jobs().collect();
        station.down_since = Some(self.now);
        let back = self.now + failures.down;
        self.queue.set(None, What::Look(node));
        self.queue.set(None, What::Decide(node));
        self.queue.push(back, What::Recover(node));
        for index in lost {
            self.depart(index, node);
            let Some(live) = self.jobs.get_mut(index) else { continue };
            live.fall_back(self.now);
            let begins = if live.job.node.is_some() { back } else { self.now };
            live.node = live.job.node;
            let at = begins + live.restoring();
            self.queue.push(at, What::Resume(index));
        }
        self.by_jobs.remove(&(0, node));
        self.plan(node);
        self.hurry_all();
    }

    /// A node works again, and jobs that had none are settled.
    pub(super) fn recover(&mut self, node: usize) {
        let Some(station) = self.stations.get_mut(node) else { return };
        if let Some(since) = station.down_since.take() {
            station.down += self.now - since;
        }
        self.by_jobs.insert((0, node));
        self.expect_failure(node);
        for index in std::mem::take(&mut self.stranded) {
            self.settle(index);
        }
        self.changed(node);
    }

    /// A job's process ends before its time, and begins anew on its node.
    pub(super) fn crash(&mut self, index: Index) {
        let Some(live) = self.jobs.get_mut(index) else { return };
        let Some(node) = live.node.filter(|_| live.crash == Some(self.now)) else { return };
        self.depart(index, node);
        let Some(live) = self.jobs.get_mut(index) else { return };
        live.fall_back(self.now);
        let down = live.job.failures.as_ref().map_or(0.0, |failures| failures.down);
        let at = self.now + down + live.restoring();
        self.moving.insert(index);
        self.queue.push(at, What::Resume(index));
        self.changed(node);
    }
}

impl Live {
    /// When its process that begins now is to crash.
    pub(super) fn next_crash(&mut self, now: f64) -> Option<f64> {
        self.job.failures.as_ref()?.next(now, self.job.arrive, &mut self.crashes)
    }

    /// All that it has done is in a checkpoint.
    pub(super) fn save(&mut self) {
        self.saved = self.before;
    }

    /// What it has done since its last checkpoint is lost.
    pub(super) fn fall_back(&mut self, now: f64) {
        let every = self.job.checkpoint.every;
        let kept =
            every.map_or(0.0, |every| every * counter(floor(self.before / every + ROUNDING)));
        let kept = self.saved.max(kept.min(self.before));
        self.outcome.failures += 1;
        *self.outcome.lost_work.get_or_insert(0.0) += self.before - kept;
        self.before = kept;
        self.restart_loss(now);
    }

    /// For how many seconds it stands still until its next process begins, to go on from its checkpoint.
    pub(super) fn restoring(&mut self) -> f64 {
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
