use std::sync::Arc;

use paceline_policy::{JobId, Share};
use paceline_wire::{Direction, Targets};
use serde::Serialize;

use super::Failures;
use super::file::Checkpoint;
use crate::curve::Curve;
use crate::fluid::Party;

/// The parts of its work after which a job says that it has reached its targets; infinite: never.
///
/// A job goes by the mean of its last reports, and noise brings that to a target before or after the
/// curve of its loss is there. Where it is not known, the curve says when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReachedAt {
    /// Its acceptable loss.
    pub acceptable: Option<f64>,
    /// Its objective.
    pub objective: Option<f64>,
}

/// One job of a workload, with everything about it that was to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// The node that it is bound to.
    pub node: Option<usize>,
    /// The largest share of a node that there is for it: of its own, where it is bound to one.
    pub room: f64,
    /// Seconds of a whole node's CPU until it is done: infinite if it never is.
    pub work: f64,
    /// The largest share of a node that it can use.
    pub parallel: f64,
    /// Its threads.
    pub threads: Option<f64>,
    /// The part of its speed that is lost when its limit is a vanishing part of its threads.
    pub throttle_cost: f64,
    /// Work in one batch, as seconds of a whole node.
    pub batch: f64,
    /// Seconds that a batch takes on top, whatever its share.
    pub fixed: f64,
    /// How its loss falls; `None` if it reports none.
    pub loss: Option<Arc<Curve>>,
    /// The deviation of one report of its loss.
    pub noise: f64,
    /// What it is asked to reach.
    pub targets: Targets,
    /// When it says that it has reached them, where that is known.
    pub reached_at: ReachedAt,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// The least share that its owner allows.
    pub min: Option<Share>,
    /// The largest.
    pub max: Option<Share>,
    /// Its weight in the limiter.
    pub weight: f64,
    /// Its CPU weight in the kernel, on Docker's scale.
    pub cpu_shares: u64,
    /// By how much it may be slowed down beside an equal share.
    pub max_slowdown: Option<f64>,
    /// What it costs to go on from a checkpoint, and how often it saves one.
    pub checkpoint: Checkpoint,
    /// When it crashes, if it ever does.
    pub failures: Option<Failures>,
}

impl Job {
    /// Which way its loss goes.
    pub fn direction(&self) -> Direction {
        let rises = self.loss.as_ref().is_some_and(|curve| curve.rises());
        if rises { Direction::Maximize } else { Direction::Minimize }
    }

    /// The work after which it says that it is acceptable, if it ever does.
    pub fn work_to_acceptable(&self) -> Option<f64> {
        self.work_to(self.targets.acceptable, self.reached_at.acceptable)
    }

    /// The same for its objective.
    pub fn work_to_objective(&self) -> Option<f64> {
        self.work_to(self.targets.objective, self.reached_at.objective)
    }

    fn work_to(&self, target: Option<f64>, at: Option<f64>) -> Option<f64> {
        let target = target?;
        let part = at.or_else(|| self.loss.as_ref()?.reach(target))?;
        (part <= 1.0).then_some(part * self.work)
    }

    /// Its batch duration at the share `x`, in seconds.
    pub fn batch_seconds(&self, x: f64) -> f64 {
        self.fixed + self.batch / x
    }

    /// The least share at which a batch takes at most `seconds`: `None` if none does.
    pub fn share_for(&self, seconds: f64) -> Option<f64> {
        let share = self.batch / (seconds - self.fixed);
        (share > 0.0 && share <= self.most()).then_some(share)
    }

    /// The largest share of a node that it can have.
    pub(crate) fn most(&self) -> f64 {
        self.parallel.min(self.room)
    }

    /// How long it takes where no other job runs.
    pub fn alone(&self) -> f64 {
        self.work / self.party(Share::ALL, self.cpu_shares, 1.0).rate(self.most())
    }

    /// What it asks of a node of `cpus` CPUs under a limit and a CPU weight.
    pub fn party(&self, cap: Share, cpu_shares: u64, cpus: f64) -> Party {
        let limit = cap.get();
        let held_back = self.threads.map_or(0.0, |threads| held_back(cap, cpus, threads));
        Party {
            weight: paceline_policy::unit::counter(cpu_shares),
            cap: limit.min(self.parallel),
            limited: limit < self.parallel,
            speed: 1.0 - self.throttle_cost * held_back,
            bend: self.fixed / self.batch,
            batch: self.batch,
        }
    }
}

/// The part of its threads' time that a job cannot have under a limit on a node of `cpus` CPUs.
pub(crate) fn held_back(cap: Share, cpus: f64, threads: f64) -> f64 {
    if cap.is_all() { 0.0 } else { (1.0 - cap.get() * cpus / threads).max(0.0) }
}
