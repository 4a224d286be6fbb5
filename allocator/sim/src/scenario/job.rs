use std::sync::Arc;

use paceline_policy::{JobId, Share};
use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Serialize, Serializer};

use super::file::Checkpoint;
use super::{Failures, Total};
use crate::curve::Curve;
use crate::fluid::Party;
use crate::residuals::Residuals;

/// The parts of its work after which a job says that it has reached its targets; infinite: never.
///
/// A job goes by the mean of its last reports, and noise brings that to a target before or after the
/// curve of its loss is there. Where it is not known, the curve says when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReachedAt {
    /// Its acceptable loss.
    #[serde(serialize_with = "part_or_never")]
    pub acceptable: Option<f64>,
    /// Its objective.
    #[serde(serialize_with = "part_or_never")]
    pub objective: Option<f64>,
}

/// JSON has no word for what is infinite, and `null` is what is not known.
#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn part_or_never<S: Serializer>(part: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match part {
        Some(part) if part.is_infinite() => serializer.serialize_str("never"),
        part => part.serialize(serializer),
    }
}

/// What a job has reported of its loss when it is first seen: a real one begins before anybody looks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The mean of its reports.
    pub loss: f64,
    /// The largest of them, without its sign.
    pub largest: f64,
}

/// What a job's process does before it can be seen: it reads its data and builds its model, without a
/// limit and without a word to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Work, as seconds of a whole node.
    pub work: f64,
    /// Seconds that it takes where no other job runs.
    pub seconds: f64,
}

/// One job of a workload, with everything about it that was to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// What its first process does before it trains, and those after it where `checkpoint` says so.
    pub start: Option<Start>,
    /// The node that it is bound to.
    pub node: Option<usize>,
    /// The largest share of a node that there is for it: of its own, where it is bound to one.
    pub room: f64,
    /// Seconds of a whole node's CPU until it is done: infinite if it never is.
    pub work: f64,
    /// What its owner says that this is, or else this itself: `None` if it never ends.
    pub declared: Option<f64>,
    /// What it says of the number of its steps.
    pub total: Total,
    /// The largest share of a node that it can use.
    pub parallel: f64,
    /// Its threads.
    pub threads: Option<f64>,
    /// The part of its CPU weight that counts in a [crowd](Company::crowd).
    pub crowded: f64,
    /// The part of its speed that is lost when its limit is a vanishing part of its threads.
    pub throttle_cost: f64,
    /// By how much a neighbour of equal share slows it down, where that is not its node's contention.
    pub contention: Option<f64>,
    /// Work in one batch, as seconds of a whole node.
    pub batch: f64,
    /// Seconds that a batch takes on top, whatever its share.
    pub fixed: f64,
    /// The deviation of one batch's duration, as a part of it.
    pub batch_noise: f64,
    /// How its loss falls; `None` if it reports none.
    pub loss: Option<Arc<Curve>>,
    /// What its reports have beside the curve, the same in each run.
    pub residuals: Arc<Residuals>,
    /// The deviation of one report of its loss.
    pub noise: f64,
    /// What it has reported when it is first seen, if it has by then.
    pub told: Option<Told>,
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

    /// How long it takes where no other job runs, its start among it.
    pub fn alone(&self) -> f64 {
        self.start_seconds() + self.training_alone()
    }

    /// The same from the end of its start.
    pub(crate) fn training_alone(&self) -> f64 {
        self.work
            / self.party(Share::ALL, self.cpu_shares, 1.0, Company::default()).rate(self.most())
    }

    /// How long its start takes at the least.
    pub(crate) fn start_seconds(&self) -> f64 {
        self.start.map_or(0.0, |start| start.seconds)
    }

    /// What it asks of a node of `cpus` CPUs under a limit and a CPU weight, in this company.
    pub fn party(&self, cap: Share, cpu_shares: u64, cpus: f64, company: Company) -> Party {
        let (limit, most) = (cap.get(), self.most_beside(company, cpus));
        let held_back = self.threads.map_or(0.0, |threads| held_back(cap, cpus, threads));
        Party {
            weight: paceline_policy::unit::counter(cpu_shares) * self.crowded.powf(company.crowd),
            cap: limit.min(most),
            limited: limit < most,
            speed: 1.0 - self.throttle_cost * held_back,
            bend: self.fixed / self.batch,
            batch: self.batch,
            contention: self.contention,
        }
    }

    /// What it asks of a node while it starts.
    pub(crate) fn starting(&self, Start { work, seconds }: Start) -> Party {
        Party {
            weight: paceline_policy::unit::counter(self.cpu_shares),
            cap: work / seconds,
            limited: false,
            speed: 1.0,
            bend: 0.0,
            batch: work,
            contention: None,
        }
    }

    /// The most that it can use beside others.
    ///
    /// A job at its limit runs in bursts, on as many CPUs at once as it has threads for, and what a
    /// neighbour cannot do meanwhile it cannot make up for: it has the other part of the time, and
    /// uses of that what it uses of a node of its own. Those who stand at no limit take
    /// [turns](TURNS) with one that has several threads. One with fewer threads than all these leave
    /// CPUs for on average is not touched.
    fn most_beside(&self, Company { held, wanted, .. }: Company, cpus: f64) -> f64 {
        if self.parallel >= 1.0 {
            return self.parallel;
        }
        let threads = self.threads_on(cpus);
        let turns = if threads > 1.0 { TURNS } else { 1.0 };
        let free = (1.0 - held).max(LEAST_LEFT);
        let left = (free - wanted).max(turns * free);
        self.parallel * (left * cpus / threads).min(1.0)
    }

    /// Whether what it asks for depends on its [`Company`].
    pub(crate) fn minds_company(&self) -> bool {
        self.parallel < 1.0 || self.crowded < 1.0
    }

    /// Its threads on a node of `cpus` CPUs.
    pub(crate) fn threads_on(&self, cpus: f64) -> f64 {
        self.threads.unwrap_or_else(|| threads_for(self.parallel, cpus))
    }
}

/// The threads of a job that does not say how many: as many as it can use CPUs of so many.
pub(crate) fn threads_for(parallel: f64, cpus: f64) -> f64 {
    (parallel * cpus).round().max(1.0)
}

/// The others on a node, as far as they matter to what a job asks of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Company {
    /// The part of what the node has for jobs that those have who stand at their limits.
    pub held: f64,
    /// The share that the rest of them could use.
    pub wanted: f64,
    /// How far they and the job itself are a crowd: 0 where two threads for each CPU compete at a time, 1
    /// where three do; one whose limit is less than an equal share competes for that part of the time.
    /// Beside one other, a thread that has slept gets back what it has missed; in a longer queue it does
    /// not, and a job whose threads wait for each other all the time gets less than its weight says.
    pub crowd: f64,
}

/// So many threads share a CPU by their weights, whatever they do …
pub(crate) const IN_TURNS: f64 = 2.0;
/// … and so many are a crowd.
pub(crate) const CROWD: f64 = 3.0;

/// The part of the time that is left to a job whose threads wait for each other, beside others that
/// always have something to do. A thread that waits gives its CPU to another for a whole turn of that
/// one, whatever their weights: of what they use alone, `vae` and `mnist` had 0.57 to 0.59 at twice the
/// weight of a job like them, 0.61 to 0.78 at 4 to 16 times, and 0.58 to 0.70 beside two light ones
/// (2 CPUs, Linux 6.18). This is the mean.
const TURNS: f64 = 0.64;

/// Limits that promise more than there is leave this part of the time to others all the same.
const LEAST_LEFT: f64 = 0.01;

/// The part of its threads' time that a job cannot have under a limit on a node of `cpus` CPUs.
pub(crate) fn held_back(cap: Share, cpus: f64, threads: f64) -> f64 {
    if cap.is_all() { 0.0 } else { (1.0 - cap.get() * cpus / threads).max(0.0) }
}
