//! TRADL: jobs whose model is already usable are limited in favour of the others.
//!
//! Source: Song: "Differentiate Containers Scheduling for `DeepLearning` Applications", master's
//! thesis, Fordham University, Section 5.1, Algorithm 1 (the text calls it Algorithm 2, T1). A job
//! has up to two targets for its loss. From *acceptable* on, its model is usable, and the job
//! belongs to the acceptable set AS. At *objective* it is ended. While others still compete, a job
//! of AS is capped: at 1/(2n) if it uses more than an equal share of the node, at 1/(n+1)
//! otherwise. No job is capped when all are acceptable or when the node has room left.
//!
//! Where the print is silent or cannot run, the code follows, in both variants: α is a fraction of
//! the node and the sum of line 3 is compared by < (T2, T3); jobs are judged before limits are set
//! (T4, T7); AS holds running jobs only (T6); a target is reached in the loss's own direction (T8,
//! T9); a missing target is never reached, and where both targets are equal, the job competes until
//! it ends (T10, T11); acceptable is latched (T12, T14); a job outside AS is unlimited (T20). The
//! variants differ in T5, T12 and T15.

use std::collections::BTreeMap;
use std::mem;

use crate::decision::{Decision, JobDecision};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policy::Policy;
use crate::reason;
use crate::reason::tradl::{Cap, End, Why};
use crate::unit::{JobId, Share, counter, saturate};
use crate::variant::Variant;

/// A job that uses this part of its cap would use more without it (T5).
const PRESSING: f64 = 0.95;

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("alpha", 0.9, "node", "below this use, the node has room left"),
    Parameter::new("confirm", 3.0, "losses", "in a row that reach the objective; published: 1"),
    Parameter::new("hold", 3.0, "frames", "in a row with room left; published: not used"),
    Parameter::new("interval", 5.0, "s", "time until the next run"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct Tradl {
    variant: Variant,
    /// Below this use of the node, it has room left.
    alpha: f64,
    /// How many losses in a row must reach the objective.
    confirm: f64,
    /// The frames in a row in which the node must have had room left.
    hold: f64,
    interval: f64,
    /// The frames in a row in which the node has had room left.
    roomy: u64,
    jobs: BTreeMap<JobId, Member>,
}

/// The state of one job, with its latest frame.
#[derive(Debug)]
struct Member {
    tiers: Tiers,
    /// Whether acceptable was reached.
    latched: bool,
    /// How many losses in a row have reached the objective.
    reaching: u64,
    ended: Option<End>,
    loss: Option<f64>,
    /// Its usage in the latest frame.
    usage: f64,
    /// The limit in force in the latest frame.
    in_force: f64,
    cap: Option<Cap>,
    share: Share,
    why: Why,
}

/// The two targets of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tiers {
    acceptable: Option<f64>,
    objective: Option<f64>,
}

impl Tradl {
    /// Its name.
    pub const NAME: &'static str = "tradl";

    /// Checks the parameters: `alpha` (0.9 of the node), `confirm` (3 losses; in print 1), `hold`
    /// (3 frames; not read in print), `interval` (5 s).
    pub fn new(variant: Variant, params: &Params) -> Result<Self, ParamError> {
        // T12: an end cannot be taken back, and a single loss may be noise. In print, one will do.
        let confirm = match variant {
            Variant::Resolved => 3.0,
            Variant::Published => 1.0,
        };
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let alpha = params.at_least("alpha", 0.0)?;
        let confirm = params.at_least_or("confirm", confirm, 1.0)?;
        let hold = params.at_least("hold", 1.0)?;
        let interval = params.positive("interval")?;
        Ok(Self { variant, alpha, confirm, hold, interval, roomy: 0, jobs: BTreeMap::new() })
    }

    /// Step 1, lines 11 to 14: which jobs are there, and what they have reached.
    fn follow(&mut self, frame: &Frame) {
        let mut before = mem::take(&mut self.jobs);
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        // Lookups and insertions are cheaper in the order of the map.
        jobs.sort_unstable_by_key(|job| &job.id);
        let followed = jobs.into_iter().map(|job| {
            let mut member = before.remove(&job.id).unwrap_or_else(|| Member::new(job));
            member.observe(job, self.confirm);
            (job.id.clone(), member)
        });
        self.jobs = followed.collect();
    }

    /// Steps 2 and 3, lines 3 to 8: the reason why no job is capped in this frame, if there is one.
    fn lifted(&mut self, jobs: usize) -> Option<Why> {
        let acceptable = || self.jobs.values().filter(|job| job.is_acceptable());
        let running = self.jobs.values().filter(|job| job.runs());
        let used = saturate(running.map(|job| job.usage).sum());
        let alpha = self.alpha;
        // T5: caps alone may be why the node is not in full use.
        let roomy = used < alpha && !acceptable().any(Member::presses);
        let all_acceptable = acceptable().count() == jobs;
        self.roomy = if roomy { self.roomy.saturating_add(1) } else { 0 };
        match self.variant {
            _ if all_acceptable => Some(Why::AllAcceptable { jobs }),
            Variant::Resolved if counter(self.roomy) >= self.hold => {
                Some(Why::Roomy { used, alpha, frames: self.roomy, hold: self.hold })
            }
            Variant::Published if used < alpha => Some(Why::Unused { used, alpha }),
            Variant::Resolved | Variant::Published => None,
        }
    }
}

impl Member {
    fn new(job: &Job) -> Self {
        Self {
            tiers: Tiers::from_job(job),
            latched: false,
            reaching: 0,
            ended: None,
            loss: None,
            usage: 0.0,
            in_force: 1.0,
            cap: None,
            share: Share::ALL,
            why: Why::NoTarget,
        }
    }

    /// Step 1 for one job.
    fn observe(&mut self, job: &Job, confirm: f64) {
        self.usage = job.usage.cpu.filter(|x| x.is_finite()).unwrap_or(0.0);
        let chosen = job.limit.chosen().unwrap_or(self.share);
        self.in_force = job.limit.applied.filter(|x| x.is_finite()).unwrap_or(chosen.get());
        let tiers = Tiers::from_job(job);
        let changed = tiers != self.tiers;
        if changed {
            (self.tiers, self.latched, self.reaching, self.cap) = (tiers, false, 0, None);
        }
        let loss = job.loss.filter(|x| x.is_finite());
        let reaches = |target| loss.is_some_and(|loss| job.direction.reached(loss, target));
        // What the job reports in the frame of the change may still concern the old target.
        let reported = job.reached.acceptable && !changed;
        self.latched |= tiers.acceptable.is_some_and(|target| reported || reaches(target));
        let Some(loss) = loss else { return };
        self.loss = Some(loss);
        let Some(objective) = tiers.objective.filter(|target| reaches(*target)) else {
            self.reaching = 0;
            return;
        };
        self.reaching = self.reaching.saturating_add(1);
        let done = counter(self.reaching) >= confirm && job.may_terminate.unwrap_or(true);
        if done && self.runs() {
            self.ended = Some(End { loss, objective, losses: self.reaching });
        }
    }

    /// Whether it counts in n, and in any sum.
    const fn runs(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether it belongs to AS.
    fn is_acceptable(&self) -> bool {
        self.runs() && self.latched && self.tiers.acceptable != self.tiers.objective
    }

    fn presses(&self) -> bool {
        self.in_force < 1.0 && self.usage >= PRESSING * self.in_force
    }

    /// Steps 2 to 4 for one job: its share and why.
    fn limit(&mut self, lifted: Option<Why>, jobs: usize, variant: Variant) {
        if let Some(end) = self.ended {
            self.why = Why::Ended(end);
            return;
        }
        if lifted.is_some() || !self.is_acceptable() {
            (self.cap, self.share) = (None, Share::ALL);
            self.why = lifted.unwrap_or_else(|| self.competes());
            return;
        }
        // T15: a lower usage under a cap does not loosen the cap. In print, it does.
        let cap = match (self.cap, variant) {
            (Some(cap), Variant::Resolved) if cap.jobs == jobs => cap,
            (_, Variant::Resolved) => Cap { jobs, usage: self.usage, tolerance: 1.05 },
            (_, Variant::Published) => Cap { jobs, usage: self.usage, tolerance: 1.0 },
        };
        (self.cap, self.share) = (Some(cap), Share::nearest(cap.share()));
        self.why = Why::Capped(cap);
    }

    fn competes(&self) -> Why {
        match self.tiers {
            Tiers { acceptable: None, .. } => Why::NoTarget,
            Tiers { acceptable: Some(target), .. } if self.latched => Why::OneTarget { target },
            Tiers { acceptable: Some(target), .. } => Why::NotYet { loss: self.loss, target },
        }
    }
}

impl Tiers {
    fn from_job(job: &Job) -> Self {
        let known = |target: Option<f64>| target.filter(|x| x.is_finite());
        Self { acceptable: known(job.targets.acceptable), objective: known(job.targets.objective) }
    }
}

impl Policy for Tradl {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([
            ("alpha", self.alpha),
            ("confirm", self.confirm),
            ("hold", self.hold),
            ("interval", self.interval),
        ])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        self.follow(frame);
        let jobs = self.jobs.values().filter(|job| job.runs()).count();
        let lifted = self.lifted(jobs);
        for job in self.jobs.values_mut() {
            job.limit(lifted, jobs, self.variant);
        }
        let running = self.jobs.iter().filter(|(_, job)| job.runs());
        let ended = self.jobs.iter().filter(|(_, job)| !job.runs());
        let explain = |(id, job): (&JobId, &Member)| {
            let (class, score) = (if job.is_acceptable() { "AS" } else { "-" }, job.loss);
            (id.clone(), JobDecision::new(class, score, reason::Why::Tradl(Box::new(job.why))))
        };
        let limits = running.map(|(id, job)| (id.clone(), job.share)).collect();
        let jobs = self.jobs.iter().map(explain).collect();
        Decision {
            terminate: ended.map(|(id, _)| id.clone()).collect(),
            ..Decision::new(frame.t, Self::NAME, self.interval, limits, jobs)
        }
    }
}

#[cfg(test)]
mod tests;
