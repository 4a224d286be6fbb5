//! `srpt`, a yardstick: the job with the least work left gets the machine.
//!
//! Shortest remaining processing time minimises the mean completion time on one machine (Schrage,
//! "A proof of the optimality of the shortest remaining processing time discipline", Operations
//! Research 16(3), 1968). It needs what a policy cannot know in general: how much work each job has
//! left. Jobs whose owners declare it (`paceline.work`) and that report their steps are ordered by it.
//! So other policies can be compared with the best order. It is not meant for production use.
//!
//! No job stops altogether: those that wait keep the limiter's minimum. So the theoretical bound is
//! missed by what they take from the first job meanwhile.

use std::collections::BTreeMap;

use crate::decision::{Decision, JobDecision};
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::per_job::PerJob;
use crate::policy::Policy;
use crate::reason;
use crate::reason::srpt::Why;
use crate::unit::Share;

/// The parameters. The interval is long for two reasons. The order changes only when jobs come and
/// go, and then the policy runs at once. And a waiting job reports seldom without being silent.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::new("interval", 60.0, "s", "time until the next run")];

/// The share of a waiting job: the limiter raises it to the job's minimum.
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
            // What exceeds the job's own maximum goes to the next one.
            let most = job.limit.max.filter(|most| *most > 0.0).unwrap_or(1.0);
            let share = if left > WAITING { left.min(most) } else { WAITING };
            left -= share;
            let remaining = remaining(job);
            let why = reason::Why::Srpt(Why { remaining, before, share, waits: share <= WAITING });
            let class = if share > WAITING { "runs" } else { "waits" };
            limits.insert(job.id.clone(), Share::nearest(share));
            jobs.insert(job.id.clone(), JobDecision::new(class, remaining, why));
        }
        Decision::new(frame.t, Self::NAME, self.interval, limits, jobs)
    }
}

fn remaining(job: &Job) -> Option<f64> {
    job.remaining.filter(|work| work.is_finite() && *work >= 0.0)
}

/// The figure that jobs are ordered by. Unknown work counts as infinite.
fn key(job: &Job) -> f64 {
    remaining(job).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests;
