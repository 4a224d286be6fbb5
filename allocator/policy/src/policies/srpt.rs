//! `srpt`, a yardstick: the job with the least work left has the machine.
//!
//! Shortest remaining processing time minimises the mean completion time on one machine (Schrage,
//! "A proof of the optimality of the shortest remaining processing time discipline", Operations
//! Research 16(3), 1968). It needs to know what no policy can know: how much work each job has left.
//! Jobs whose owners declare it (`paceline.work`) and that tell how many of their steps are done are
//! ordered by it, so that other policies can be held against the best order. It is not meant for a
//! machine in use.
//!
//! Nobody stops altogether: those that wait keep what the limiter gives at the least, so the bound
//! itself is missed by what they take from the first meanwhile.

use std::collections::BTreeMap;
use std::fmt;

use crate::decision::{Decision, JobDecision};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::per_job::PerJob;
use crate::policies;
use crate::policy::Policy;
use crate::unit::Share;

/// What can be set. The order changes when jobs come and go, and then the policy runs at once; and
/// a job that waits, and so reports seldom, is not to be taken for one that has gone silent.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::new("interval", 60.0, "s", "time until the next run")];

/// The share of a job that waits: the limiter raises it to the least that the job may have.
const WAITING: f64 = 0.001;

/// The policy. It remembers nothing.
#[derive(Debug)]
pub struct Srpt {
    interval: f64,
}

impl Srpt {
    /// Its name.
    pub const NAME: &'static str = "srpt";

    /// Checks the parameters: `interval`, in seconds (60).
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let interval = params.positive("interval")?;
        Ok(Self { interval })
    }
}

impl Policy for Srpt {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([("interval", self.interval)])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let mut line: Vec<&Job> = frame.jobs.iter().collect();
        line.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.id.cmp(&b.id)));
        let (mut limits, mut jobs) = (PerJob::new(), PerJob::new());
        let mut left = 1.0_f64;
        for (before, job) in line.into_iter().enumerate() {
            // A job that its owner lets have no more leaves the rest to the next.
            let most = job.limit.max.filter(|most| *most > 0.0).unwrap_or(1.0);
            let share = if left > WAITING { left.min(most) } else { WAITING };
            left -= share;
            let remaining = remaining(job);
            let why = policies::Why::Srpt(Why { remaining, before, share });
            let class = if share > WAITING { "runs" } else { "waits" };
            limits.insert(job.id.clone(), Share::nearest(share));
            jobs.insert(job.id.clone(), JobDecision::new(class, remaining, why));
        }
        Decision {
            t: frame.t,
            policy: Self::NAME,
            interval: self.interval,
            limits,
            terminate: Vec::new(),
            migrate: Vec::new(),
            place: Vec::new(),
            waiting: Vec::new(),
            jobs,
        }
    }
}

fn remaining(job: &Job) -> Option<f64> {
    job.remaining.filter(|work| work.is_finite() && *work >= 0.0)
}

/// What jobs are ordered by: of whose work nothing is known, it is taken to be endless.
fn key(job: &Job) -> f64 {
    remaining(job).unwrap_or(f64::INFINITY)
}

/// Why a job gets its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// The work that it has left, in seconds of the whole machine.
    remaining: Option<f64>,
    /// How many have less.
    before: usize,
    share: f64,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining {
            Some(work) => write!(f, "{work:.1} s of work left, ")?,
            None => f.write_str("nobody says how much work is left, ")?,
        }
        match (self.before, self.share > WAITING) {
            (0, _) => f.write_str("the least of all"),
            (before, true) => write!(f, "{before} have less and leave {:.2}", self.share),
            (before, false) => write!(f, "{before} have less: it waits"),
        }
    }
}

#[cfg(test)]
mod tests;
