use std::sync::Arc;

use paceline_policy::{JobId, Share};
use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Serialize, Serializer};

use super::file::Checkpoint;
use super::{Failures, Total};
use crate::curve::Curve;
use crate::fluid::Demand;
use crate::residuals::Residuals;

/// The parts of its work after which a job reports that it has reached its targets; infinite for
/// never.
///
/// A job uses the mean of its last reports, which noise brings to a target before or after its loss
/// curve reaches it. If a part is unknown, the curve determines it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReachedAt {
    /// Its acceptable loss.
    #[serde(serialize_with = "part_or_never")]
    pub acceptable: Option<f64>,
    /// Its objective.
    #[serde(serialize_with = "part_or_never")]
    pub objective: Option<f64>,
}

/// JSON cannot represent infinity, and `null` means unknown.
#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn part_or_never<S: Serializer>(part: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match part {
        Some(part) if part.is_infinite() => serializer.serialize_str("never"),
        part => part.serialize(serializer),
    }
}

/// What a job has reported of its loss before its first frame: real jobs begin before they are
/// observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EarlyReports {
    /// The mean of its reports.
    pub loss: f64,
    /// The largest absolute value of them.
    pub largest: f64,
}

/// The start of a job's process before it is observed: it reads its data and builds its model,
/// without a limit and without reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Work, as seconds of a whole node.
    pub work: f64,
    /// Seconds that it takes if no other job runs.
    pub seconds: f64,
}

/// One job of a workload, with all random values drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// The start of its first process, and of later ones where `checkpoint` requires it.
    pub start: Option<Start>,
    /// The node that it is bound to.
    pub node: Option<usize>,
    /// The largest share of a node available to it; if it is bound, of its node.
    pub room: f64,
    /// Its work, as seconds of a whole node's CPU: infinite if it never ends.
    pub work: f64,
    /// The work that its owner declares, by default `work`; `None` if it never ends.
    pub declared: Option<f64>,
    /// The number of steps that it states.
    pub total: Total,
    /// The largest share of a node that it can use.
    pub parallel: f64,
    /// Its threads.
    pub threads: Option<f64>,
    /// The part of its CPU weight that counts under
    /// [oversubscription](Competition::oversubscription).
    pub crowded: f64,
    /// The part of its speed that it loses as its limit approaches 0.
    pub throttle_cost: f64,
    /// By how much a neighbour of equal share slows it down; `None` for its node's contention.
    pub contention: Option<f64>,
    /// Work in one batch, as seconds of a whole node.
    pub batch: f64,
    /// Seconds that a batch takes in addition, whatever its share.
    pub fixed: f64,
    /// The deviation of one batch's duration, as a part of it.
    pub batch_noise: f64,
    /// How its loss falls; `None` if it reports none.
    pub loss: Option<Arc<Curve>>,
    /// The deviations of its reports from the curve that are the same in each run.
    pub residuals: Arc<Residuals>,
    /// The deviation of one report of its loss.
    pub noise: f64,
    /// What it has reported before its first frame, if anything.
    pub early_reports: Option<EarlyReports>,
    /// Its targets.
    pub targets: Targets,
    /// When it reports that it has reached its targets, where that is known.
    pub reached_at: ReachedAt,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// The least share that its owner allows.
    pub min: Option<Share>,
    /// The largest share that its owner allows.
    pub max: Option<Share>,
    /// Its weight in the limiter.
    pub weight: f64,
    /// Its CPU weight in the kernel, on Docker's scale.
    pub cpu_shares: u64,
    /// By how much it may be slowed down compared with an equal share.
    pub max_slowdown: Option<f64>,
    /// What resuming from a checkpoint costs, and how often it saves one.
    pub checkpoint: Checkpoint,
    /// When it crashes, if it ever does.
    pub failures: Option<Failures>,
}

impl Job {
    /// The direction in which its loss improves.
    pub fn direction(&self) -> Direction {
        let rises = self.loss.as_ref().is_some_and(|curve| curve.rises());
        if rises { Direction::Maximize } else { Direction::Minimize }
    }

    /// The work after which it reports that it is acceptable, if it ever does.
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

    /// The least share at which a batch takes at most `seconds`; `None` if there is none.
    pub fn share_for(&self, seconds: f64) -> Option<f64> {
        let share = self.batch / (seconds - self.fixed);
        (share > 0.0 && share <= self.most()).then_some(share)
    }

    /// The largest share of a node that it can have.
    pub(crate) fn most(&self) -> f64 {
        self.parallel.min(self.room)
    }

    /// How long it takes if no other job runs, including its start, in seconds.
    pub fn alone(&self) -> f64 {
        self.start_seconds() + self.training_alone()
    }

    /// The same from the end of its start.
    pub(crate) fn training_alone(&self) -> f64 {
        self.work
            / self
                .demand(Share::ALL, self.cpu_shares, 1.0, Competition::default())
                .rate(self.most())
    }

    /// The least length of its start, in seconds.
    pub(crate) fn start_seconds(&self) -> f64 {
        self.start.map_or(0.0, |start| start.seconds)
    }

    /// Its demand on a node of `cpus` CPUs, under a limit, a CPU weight and this competition.
    pub fn demand(
        &self,
        cap: Share,
        cpu_shares: u64,
        cpus: f64,
        competition: Competition,
    ) -> Demand {
        let (limit, most) = (cap.get(), self.most_beside(competition, cpus));
        let held_back = self.threads.map_or(0.0, |threads| held_back(cap, cpus, threads));
        Demand {
            weight: paceline_policy::unit::counter(cpu_shares)
                * self.crowded.powf(competition.oversubscription),
            cap: limit.min(most),
            limited: limit < most,
            speed: 1.0 - self.throttle_cost * held_back,
            fixed_per_work: self.fixed / self.batch,
            batch: self.batch,
            contention: self.contention,
        }
    }

    /// Its demand on a node while it starts.
    pub(crate) fn starting(&self, Start { work, seconds }: Start) -> Demand {
        Demand {
            weight: paceline_policy::unit::counter(self.cpu_shares),
            cap: work / seconds,
            limited: false,
            speed: 1.0,
            fixed_per_work: 0.0,
            batch: work,
            contention: None,
        }
    }

    /// The largest share that it can use beside others.
    ///
    /// A job at its limit runs in bursts, on as many CPUs as it has threads. A neighbour cannot
    /// make up for what it misses meanwhile. It has the rest of the time, and uses the same part of
    /// that as on a node of its own. Jobs that are not at a limit take [turns](SHARE_IN_TURNS) with
    /// a job of several threads. A job is not affected if it has fewer threads than CPUs that these
    /// leave free on average.
    fn most_beside(&self, Competition { held, wanted, .. }: Competition, cpus: f64) -> f64 {
        if self.parallel >= 1.0 {
            return self.parallel;
        }
        let threads = self.threads_on(cpus);
        let turns = if threads > 1.0 { SHARE_IN_TURNS } else { 1.0 };
        let free = (1.0 - held).max(MIN_LEFT);
        let left = (free - wanted).max(turns * free);
        self.parallel * (left * cpus / threads).min(1.0)
    }

    /// Whether its demand depends on the [`Competition`].
    pub(crate) fn depends_on_competition(&self) -> bool {
        self.parallel < 1.0 || self.crowded < 1.0
    }

    /// Its threads on a node of `cpus` CPUs.
    pub(crate) fn threads_on(&self, cpus: f64) -> f64 {
        self.threads.unwrap_or_else(|| threads_for(self.parallel, cpus))
    }
}

/// The default number of threads of a job: as many as the CPUs that it can use.
pub(crate) fn threads_for(parallel: f64, cpus: f64) -> f64 {
    (parallel * cpus).round().max(1.0)
}

/// The competition for a node's CPU by other jobs, as far as it changes a job's demand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Competition {
    /// The part of the CPU available to jobs that is held by jobs at their limits.
    pub held: f64,
    /// The share that the other jobs could use.
    pub wanted: f64,
    /// How oversubscribed the node is: 0 if two threads compete for each CPU, 1 if three do. A job
    /// whose limit is less than an equal share competes for that part of the time. Beside one other
    /// thread, a thread that has slept gets back what it missed. In a longer queue it does not, so
    /// a job whose threads often wait for each other gets less than its weight.
    pub oversubscription: f64,
}

/// Up to so many threads share a CPU by their weights …
pub(crate) const FAIR_THREADS: f64 = 2.0;
/// … and with so many it is fully oversubscribed.
pub(crate) const OVERSUBSCRIBED_THREADS: f64 = 3.0;

/// The part of the time left to a job whose threads wait for each other, beside jobs that are
/// always busy. A waiting thread gives its CPU to another job for a whole time slice, whatever
/// their weights. Measured for `vae` and `mnist` on 2 CPUs, Linux 6.18, as parts of their use
/// alone: 0.57 to 0.59 at twice the weight of a similar job; 0.61 to 0.78 at 4 to 16 times; 0.58 to
/// 0.70 beside two light jobs. This is the mean.
const SHARE_IN_TURNS: f64 = 0.64;

/// Limits with a sum above the available share still leave others this part of the time.
const MIN_LEFT: f64 = 0.01;

/// The part of its threads' time that a limit takes from a job on a node of `cpus` CPUs.
pub(crate) fn held_back(cap: Share, cpus: f64, threads: f64) -> f64 {
    if cap.is_all() { 0.0 } else { (1.0 - cap.get() * cpus / threads).max(0.0) }
}
