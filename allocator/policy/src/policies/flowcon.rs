//! FlowCon: CPU goes to the jobs whose loss still falls.
//!
//! Source: Zheng, Tynes, Gorelick, Mao, Cheng, Hou: "`FlowCon`: Elastic Flow Configuration for
//! Containerized Deep Learning Applications", ICPP 2019, Algorithms 1 and 2, Eq. 1 and 2.
//! A job's *growth efficiency* is
//! G = |E(t) − E(t−1)| / Δt / R: the progress of its loss per second and per share of the machine
//! in use. By G against α, jobs move between three lists: NL (new or growing), WL (watching), CL
//! (completing). Jobs of CL are limited. When all jobs are in CL, limits are lifted and the
//! interval doubles.
//!
//! Where the print is silent or cannot run, the code follows, in both variants: β = 2, the only
//! value that gives the paper's worked example (F1); R below 1 % of the machine is not measured
//! (F4); a job without two losses is unmeasured, not flat (F7); the interval backs off to at most
//! 16 times its base (F14); jobs are compared as sets (F26). The variants differ in F6, F14, F16,
//! F19, F20 and X6.

use std::collections::BTreeMap;
use std::mem;

use crate::decision::{Decision, JobDecision};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::per_job::PerJob;
use crate::policy::Policy;
use crate::reason;
use crate::reason::flowcon::Why;
use crate::signal::Learning;
use crate::unit::{JobId, Share, count, saturate};
use crate::variant::Variant;

/// A sum of growth efficiencies below this counts as 0 (F17).
const EPSILON: f64 = 1e-9;
/// A job that used less of the node than this did not train: its growth is not measured (F4).
const MIN_USAGE: f64 = 0.01;

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("alpha", 0.01, "per s and node", "growth of the loss below this counts as none"),
    Parameter::new("beta", 2.0, "-", "a completing job keeps 1/(beta n) of the node"),
    Parameter::new("interval", 20.0, "s", "time until the next run"),
    Parameter::new("max_interval", 320.0, "s", "bound of the back-off; 16 x interval by default"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct FlowCon {
    variant: Variant,
    /// G below this counts as no growth, per second and node.
    alpha: f64,
    /// The floor of a CL job is 1/(β·n).
    beta: f64,
    base_interval: f64,
    max_interval: f64,
    interval: f64,
    jobs: PerJob<Member>,
}

/// The state of one job.
#[derive(Debug)]
struct Member {
    /// Whether this frame is its first.
    appeared: bool,
    list: List,
    learning: Learning,
    /// The latest growth efficiency; `None` makes the job a newcomer.
    growth: Option<f64>,
    share: Share,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Watching,
    Completing,
}

impl List {
    const fn label(self) -> &'static str {
        match self {
            Self::New => "NL",
            Self::Watching => "WL",
            Self::Completing => "CL",
        }
    }

    /// One step a frame (Algorithm 1, lines 4 to 13; F8).
    const fn next(self, growing: bool) -> Self {
        match (growing, self) {
            (true, _) => Self::New,
            (false, Self::New) => Self::Watching,
            (false, Self::Watching | Self::Completing) => Self::Completing,
        }
    }
}

/// The figures of one frame on which the limits of all jobs depend.
struct Round {
    /// n, as a factor.
    jobs: f64,
    some_left: bool,
    /// g of a job that was never measured (F16).
    newcomer: f64,
    /// Σ g.
    sum: f64,
}

impl FlowCon {
    /// Its name.
    pub const NAME: &'static str = "flowcon";

    /// Checks the parameters: `alpha` (0.01 per second and node), `beta` (2), `interval` (20 s),
    /// `max_interval` (16 × `interval`).
    pub fn new(variant: Variant, params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let alpha = params.at_least("alpha", 0.0)?;
        let beta = params.positive("beta")?;
        let interval = params.positive("interval")?;
        let max_interval = params.at_least_or("max_interval", 16.0 * interval, interval)?;
        Ok(Self {
            variant,
            alpha,
            beta,
            base_interval: interval,
            max_interval,
            interval,
            jobs: PerJob::new(),
        })
    }

    /// Steps 1 to 3: arrivals and departures (Algorithm 2), measurements, and the lists (Algorithm 1,
    /// lines 2 to 13). Returns whether any job left.
    fn follow(&mut self, frame: &Frame) -> bool {
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        jobs.sort_unstable_by_key(|job| &job.id);
        let known_before = self.jobs.len();
        // Both sides are in the order of ids, so one pass matches them.
        let mut before = mem::take(&mut self.jobs).into_iter().peekable();
        let (mut stayed, mut followed) = (0, Vec::with_capacity(jobs.len()));
        for job in jobs {
            while before.next_if(|(id, _)| *id < job.id).is_some() {}
            let mut member = match before.next_if(|(id, _)| *id == job.id) {
                Some((_, member)) => {
                    stayed += 1;
                    let share = job.limit.chosen().unwrap_or(member.share);
                    Member { share, appeared: false, ..member }
                }
                None => Member::new(),
            };
            self.classify(&mut member, frame.t, job);
            followed.push((job.id.clone(), member));
        }
        self.jobs = followed.into_iter().collect();
        let some_left = stayed < known_before;
        if some_left || stayed < self.jobs.len() {
            self.interval = self.base_interval;
        }
        some_left
    }

    /// Steps 2 and 3 for one job: measure it, and move it between the lists.
    fn classify(&self, member: &mut Member, t: f64, job: &Job) {
        let step = member.learning.observe(t, job, self.variant, self.base_interval / 2.0);
        let usage = job.usage.cpu.filter(|cpu| *cpu >= MIN_USAGE);
        if let (Some(step), Some(usage)) = (step, usage) {
            let growth = saturate(step.progress / step.seconds / usage);
            member.growth = Some(growth);
            member.list = member.list.next(growth >= self.alpha);
        }
    }

    /// The figures that step 4 divides by.
    fn round(&self, some_left: bool) -> Round {
        let largest = self.jobs.values().filter_map(|job| job.growth).fold(0.0, f64::max);
        let newcomer = self.alpha.max(largest);
        let counted = |job: &Member| match (job.growth, self.variant) {
            (Some(growth), _) => growth,
            (None, Variant::Resolved) => newcomer,
            (None, Variant::Published) => 0.0,
        };
        let sum = saturate(self.jobs.values().map(counted).sum());
        Round { jobs: count(self.jobs.len()), some_left, newcomer, sum }
    }

    /// Step 4 for one job, Algorithm 1, lines 18 to 26: its share and why.
    fn share(&self, job: &Member, round: &Round) -> (f64, Why) {
        let kept = job.share.get();
        let Some(growth) = job.growth else { return (1.0, Why::Newcomer) };
        let (alpha, part, equal) = (self.alpha, growth / round.sum, 1.0 / round.jobs);
        match (job.list, self.variant) {
            // F19: a growing job never gets less than a completing one, nor than an equal share.
            (List::New, Variant::Resolved) => {
                (part.max(equal), Why::Growing { growth, alpha, part, equal: Some(equal) })
            }
            (List::New, Variant::Published) => {
                (part, Why::Growing { growth, alpha, part, equal: None })
            }
            // F20: what a neighbour leaves behind is not left idle.
            (List::Watching, Variant::Resolved) if round.some_left => {
                (kept.max(equal), Why::Raised { kept, equal })
            }
            (List::Watching, _) => (kept, Why::Watched { growth, alpha }),
            (List::Completing, _) => {
                let floor = 1.0 / (self.beta * round.jobs);
                (part.max(floor), Why::Completing { growth, alpha, part, floor })
            }
        }
    }

    /// Step 4: the limits of all jobs, and the interval.
    fn limit(&mut self, round: &Round) {
        if self.jobs.is_empty() {
            return;
        }
        let mut jobs = mem::take(&mut self.jobs);
        if jobs.values().all(|job| job.list == List::Completing) {
            // Lines 14 to 17, with the doubling bounded (F14).
            self.interval = (2.0 * self.interval).min(self.max_interval);
            for job in jobs.values_mut() {
                (job.share, job.why) = (Share::ALL, Why::AllCompleting);
            }
        } else {
            if self.variant == Variant::Resolved {
                self.interval = self.base_interval;
            }
            for job in jobs.values_mut() {
                let (share, why) = match round.sum > EPSILON {
                    true => self.share(job, round),
                    // F17: nothing to divide by.
                    false if job.appeared => (1.0, Why::Newcomer),
                    false => (job.share.get(), Why::NoGrowth),
                };
                (job.share, job.why) = (Share::nearest(share), why);
            }
        }
        self.jobs = jobs;
    }
}

impl Member {
    fn new() -> Self {
        Self {
            appeared: true,
            list: List::New,
            learning: Learning::default(),
            growth: None,
            share: Share::ALL,
            why: Why::Newcomer,
        }
    }
}

impl Policy for FlowCon {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([
            ("alpha", self.alpha),
            ("beta", self.beta),
            ("interval", self.base_interval),
            ("max_interval", self.max_interval),
        ])
    }

    /// The paper's listeners react only to jobs that come and go (Algorithm 2).
    fn reacts_to_targets(&self) -> bool {
        false
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let some_left = self.follow(frame);
        let round = self.round(some_left);
        self.limit(&round);
        let explain = |(id, job): (&JobId, &Member)| {
            let score = Some(job.growth.unwrap_or(round.newcomer));
            let why = reason::Why::FlowCon(job.why);
            (id.clone(), JobDecision::new(job.list.label(), score, why))
        };
        let limits = self.jobs.iter().map(|(id, job)| (id.clone(), job.share)).collect();
        let jobs = self.jobs.iter().map(explain).collect();
        Decision::new(frame.t, Self::NAME, self.interval, limits, jobs)
    }
}

#[cfg(test)]
mod tests;
