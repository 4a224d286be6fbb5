//! `DQoES`: every job gets the CPU that keeps its batches at their target duration.
//!
//! Source: Song: "Differentiate Containers Scheduling for `DeepLearning` Applications", master's
//! thesis, Fordham University, Section 5.2, Algorithms 2 and 3. A job's *quality* is q = o − p: its
//! target duration of a batch less the duration measured. Jobs that are faster than asked by more
//! than α·o (set G) are cut a little in each run, jobs that are slower by more than that (B) get
//! what this frees, all others (S) are left alone. How soon the next run comes is up to the
//! adaptive listener.
//!
//! Where the print is silent or cannot run, the code follows, in both variants: sums start at 0
//! in each run (D1); α = β = 0.1 (D2); usage and limits are fractions of the node, of which there
//! is one (D3, D4); a job without a target is left alone (D8); a bound of a set belongs to S (D9);
//! a job without a batch since its last change of limit waits for one (D10); no job of G is raised
//! by the floor (D12); an empty set divides nothing (D18). The variants differ in D5, D12, D13, and
//! in the listener's E4 and E5.

mod listener;

use std::collections::BTreeMap;
use std::mem;

use crate::decision::{Decision, JobDecision};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policy::Policy;
use crate::reason;
use crate::reason::dqoes::{Measurement, Set, Why};
use crate::unit::{JobId, Share, count, saturate};
use crate::variant::Variant;
use listener::{Listener, Qualities};

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new("alpha", 0.1, "target", "a batch may miss its target by this part"),
    Parameter::new("beta", 0.1, "usage", "part of the fast jobs' usage that one run takes"),
    Parameter::new("interval", 15.0, "s", "initial time until the next run"),
];

/// The policy and its state.
#[derive(Debug)]
pub struct Dqoes {
    variant: Variant,
    /// The part of a target by which a job may miss it.
    alpha: f64,
    /// The part of what the jobs of G use that one run takes from them.
    beta: f64,
    listener: Listener,
    jobs: BTreeMap<JobId, Member>,
}

/// The state of one job, with its latest frame.
#[derive(Debug)]
struct Member {
    /// o.
    target: Option<f64>,
    measurement: Option<Measurement>,
    /// Whether the frame gave a batch duration to act on (D10).
    measured: bool,
    usage: f64,
    share: Share,
    why: Why,
}

impl Measurement {
    /// Lines 5 to 15, for the target `o` and the duration `p`.
    fn new(o: f64, p: f64, alpha: f64) -> Self {
        let (quality, band) = (saturate(o - p), saturate(alpha * o));
        let set = if quality > band {
            Set::Ahead
        } else if quality < -band {
            Set::Behind
        } else {
            Set::Satisfied
        };
        Self { set, quality, band }
    }
}

/// The sums over one frame.
struct Round {
    /// n, as a factor.
    jobs: f64,
    qualities: Qualities,
    /// `R_G`: the usage of the jobs of G.
    used_ahead: f64,
    /// The total usage of all jobs.
    used: f64,
}

impl Dqoes {
    /// Its name.
    pub const NAME: &'static str = "dqoes";

    /// Checks the parameters: `alpha` (0.1 of the target), `beta` (0.1 of the usage), `interval`
    /// (15 s).
    pub fn new(variant: Variant, params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let alpha = params.at_least("alpha", 0.0)?;
        let beta = params.at_least("beta", 0.0)?;
        let interval = params.positive("interval")?;
        let listener = Listener::new(variant, interval);
        Ok(Self { variant, alpha, beta, listener, jobs: BTreeMap::new() })
    }

    /// Step 1: which jobs are there, and the set of each. Returns whether jobs or targets differ from the
    /// previous frame.
    fn follow(&mut self, frame: &Frame) -> bool {
        let mut before = mem::take(&mut self.jobs);
        let mut disturbed = frame.jobs.is_empty();
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        // Lookups and insertions are cheaper in the order of the map.
        jobs.sort_unstable_by_key(|job| &job.id);
        let followed = jobs.into_iter().map(|job| {
            let known = before.remove(&job.id);
            disturbed |= known.is_none();
            let mut member = known.unwrap_or_else(Member::new);
            disturbed |= member.observe(job, self.alpha);
            (job.id.clone(), member)
        });
        self.jobs = followed.collect();
        disturbed || !before.is_empty()
    }

    /// The sums of lines 6 to 15, in the order of ids. A job that this frame did not measure counts
    /// with its last quality.
    fn round(&self) -> Round {
        let within = |set| self.jobs.values().filter(move |job| job.set() == Some(set));
        let quality = |set| within(set).filter_map(|job| job.measurement).map(|last| last.quality);
        Round {
            jobs: count(self.jobs.len()),
            qualities: Qualities {
                ahead: saturate(quality(Set::Ahead).sum()),
                behind: saturate(quality(Set::Behind).sum()),
                satisfied: within(Set::Satisfied).count(),
            },
            used_ahead: saturate(within(Set::Ahead).map(|job| job.usage).sum()),
            used: saturate(self.jobs.values().map(|job| job.usage).sum()),
        }
    }

    /// The jobs of a set whose limits this frame may change, with their measurements (D10).
    fn measured(&mut self, set: Set) -> impl Iterator<Item = (&mut Member, Measurement)> {
        self.jobs.values_mut().filter(|job| job.measured).filter_map(move |job| {
            let measurement = job.measurement.filter(|measurement| measurement.set == set)?;
            Some((job, measurement))
        })
    }

    /// Step 2, lines 18 to 20: cuts the jobs of G. Returns the share that this frees.
    fn cut(&mut self, round: &Round) -> f64 {
        let (variant, beta) = (self.variant, self.beta);
        let least = match variant {
            Variant::Resolved => 1.0 / (4.0 * round.jobs),
            Variant::Published => 1.0 / (2.0 * round.jobs),
        };
        let mut freed = 0.0;
        for (job, measurement) in self.measured(Set::Ahead) {
            let limit = job.share.get();
            // D5: a limit far above the usage has no effect, and would take many runs to cut.
            let base = match variant {
                Variant::Resolved => limit.min(job.usage.max(1.0 / (2.0 * round.jobs))),
                Variant::Published => limit,
            };
            let part = measurement.quality / round.qualities.ahead;
            let factor = saturate(1.0 - part * round.used_ahead * beta);
            job.share = Share::nearest(limit.min(least.max(base * factor)));
            job.why = Why::Cut { measurement, limit, least, base, factor };
            freed += base - job.share.get();
        }
        freed
    }

    /// Step 3, lines 22 to 24: raises the jobs of B.
    fn raise(&mut self, round: &Round, freed: f64) {
        let (variant, beta) = (self.variant, self.beta);
        // D13: what the jobs of G give and what is unused. In print, B grows by what G uses.
        let budget = saturate(freed + (1.0 - round.used).max(0.0));
        for (job, measurement) in self.measured(Set::Behind) {
            let limit = job.share.get();
            let raised = match variant {
                Variant::Resolved => {
                    let gain = saturate(budget * measurement.quality) / round.qualities.behind;
                    job.why = Why::Given { measurement, limit, budget, gain: saturate(gain) };
                    limit + gain
                }
                Variant::Published => {
                    let part = measurement.quality / round.qualities.behind;
                    let factor = saturate(1.0 + part * round.used_ahead * beta);
                    job.why = Why::Grown { measurement, limit, factor };
                    limit * factor
                }
            };
            job.share = Share::nearest(raised.min(1.0));
        }
    }
}

impl Member {
    const fn new() -> Self {
        Self {
            target: None,
            measurement: None,
            measured: false,
            usage: 0.0,
            share: Share::ALL,
            why: Why::NoTarget,
        }
    }

    /// Step 1 for one job, with the reason if its limit is kept. Returns whether its target changed.
    fn observe(&mut self, job: &Job, alpha: f64) -> bool {
        self.usage = job.usage.cpu.filter(|x| x.is_finite()).unwrap_or(0.0);
        self.share = job.limit.chosen().unwrap_or(self.share);
        let target = job.targets.batch_latency.filter(|o| o.is_finite() && *o > 0.0);
        let latency = job.batch_latency.filter(|x| x.is_finite());
        let changed = mem::replace(&mut self.target, target) != target;
        self.measurement = match (target, latency) {
            (None, _) => None,
            (Some(_), None) => self.measurement,
            (Some(o), Some(p)) => Some(Measurement::new(o, p, alpha)),
        };
        self.measured = latency.is_some();
        self.why = match (target, self.measurement) {
            (None, _) => Why::NoTarget,
            (Some(_), None) => Why::NoBatchYet,
            (Some(_), Some(measurement)) if self.measured => Why::Satisfied(measurement),
            (Some(_), Some(measurement)) => Why::NoBatch(measurement),
        };
        changed
    }

    fn set(&self) -> Option<Set> {
        self.measurement.map(|measurement| measurement.set)
    }
}

impl Policy for Dqoes {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        let interval = self.listener.base();
        BTreeMap::from([("alpha", self.alpha), ("beta", self.beta), ("interval", interval)])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let disturbed = self.follow(frame);
        let round = self.round();
        let freed = self.cut(&round);
        self.raise(&round, freed);
        let explain = |(id, job): (&JobId, &Member)| {
            let class = job.set().map_or("-", Set::label);
            let score = job.measurement.map(|measurement| measurement.quality);
            (id.clone(), JobDecision::new(class, score, reason::Why::Dqoes(Box::new(job.why))))
        };
        let limits = self.jobs.iter().map(|(id, job)| (id.clone(), job.share)).collect();
        let jobs = self.jobs.iter().map(explain).collect();
        Decision::new(
            frame.t,
            Self::NAME,
            self.listener.next_interval(disturbed, round.qualities),
            limits,
            jobs,
        )
    }
}

#[cfg(test)]
mod tests;
