//! `none`, the baseline: no limits, so that the kernel shares the CPU.

use std::collections::BTreeMap;

use crate::decision::{Decision, JobDecision};
use crate::frame::Frame;
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::policy::Policy;
use crate::reason::Why;
use crate::unit::Share;

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::new("interval", 20.0, "s", "time until the next run")];

/// Leaves every job unlimited.
#[derive(Debug)]
pub struct Unlimited {
    interval: f64,
}

impl Unlimited {
    /// Its name.
    pub const NAME: &'static str = "none";

    /// Checks the parameters: `interval`, in seconds (20).
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let interval = params.positive("interval")?;
        Ok(Self { interval })
    }
}

impl Policy for Unlimited {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([("interval", self.interval)])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let why = || JobDecision::new("-", None, Why::Unlimited);
        let limits = frame.jobs.iter().map(|job| (job.id.clone(), Share::ALL)).collect();
        let jobs = frame.jobs.iter().map(|job| (job.id.clone(), why())).collect();
        Decision::new(frame.t, Self::NAME, self.interval, limits, jobs)
    }
}
