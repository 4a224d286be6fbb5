//! The parameters.

use std::collections::BTreeMap;

use super::work::Trust;
use crate::params::{ParamError, Parameter, Params, Reader};

/// What can be set.
pub(in crate::policies) const PARAMETERS: &[Parameter] = &[
    Parameter::new("interval", 10.0, "s", "the longest time until the next run"),
    Parameter::new("least", 1.0, "s", "the shortest; a slack of a quarter of it is used up"),
    Parameter::new("hold", 1.1, "times", "the job that is served counts so much more"),
    Parameter::new("wait", 0.02, "node", "what all that wait have together"),
    Parameter::new("theta", 0.05, "part", "how far a job of unknown size may fall behind"),
    Parameter::new("probe", 0.5, "s", "service until a job has begun, of the whole node"),
    Parameter::new("trust", 1.25, "times", "beyond so much of its stated size, that is broken"),
    Parameter::new("beyond", 3.0, "times", "beyond so much of it, the size is unknown"),
    Parameter::new("doubt", 0.25, "times", "such a job counts so much of one that states nothing"),
    Parameter::new("early", 1.0, "ends", "what a usable model counts beside the end"),
    Parameter::new("mercy", 0.5, "part", "services leave training so much of its share"),
    Parameter::new("prior", 5.0, "s", "work that a job of unknown size has at the least"),
    Parameter::new("relax", 0.0, "part", "deadlines are put off by so much of the fair time"),
    Parameter::new("whole", 0.6, "node", "who can use more than this can use all"),
    Parameter::new("learn", 0.0, "ends", "what a fall of the loss by half counts beside the end"),
];

/// The parameters in force, by the names that they are given by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) interval: f64,
    pub(super) least: f64,
    pub(super) hold: f64,
    pub(super) wait: f64,
    pub(super) theta: f64,
    pub(super) probe: f64,
    pub(super) trust: f64,
    pub(super) beyond: f64,
    pub(super) doubt: f64,
    pub(super) early: f64,
    pub(super) mercy: f64,
    pub(super) prior: f64,
    pub(super) relax: f64,
    pub(super) whole: f64,
    pub(super) learn: f64,
}

impl Settings {
    pub(super) fn new(policy: &'static str, params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(policy, PARAMETERS, params)?;
        Ok(Self {
            interval: params.positive("interval")?,
            least: params.positive("least")?,
            hold: params.at_least("hold", 1.0)?,
            wait: params.part("wait")?,
            theta: params.part("theta")?,
            probe: params.positive("probe")?,
            trust: params.at_least("trust", 1.0)?,
            beyond: params.at_least("beyond", 1.0)?,
            doubt: params.at_least("doubt", 0.0)?,
            early: params.at_least("early", 0.0)?,
            mercy: params.part("mercy")?,
            prior: params.positive("prior")?,
            relax: params.at_least("relax", 0.0)?,
            whole: params.part("whole")?,
            learn: params.at_least("learn", 0.0)?,
        })
    }

    pub(super) fn in_force(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([
            ("interval", self.interval),
            ("least", self.least),
            ("hold", self.hold),
            ("wait", self.wait),
            ("theta", self.theta),
            ("probe", self.probe),
            ("trust", self.trust),
            ("beyond", self.beyond),
            ("doubt", self.doubt),
            ("early", self.early),
            ("mercy", self.mercy),
            ("prior", self.prior),
            ("relax", self.relax),
            ("whole", self.whole),
            ("learn", self.learn),
        ])
    }

    pub(super) fn believes(&self) -> Trust {
        Trust { broken: self.trust, beyond: self.beyond }
    }
}
