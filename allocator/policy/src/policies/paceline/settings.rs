//! The parameters.

use std::collections::BTreeMap;

use super::work::Trust;
use crate::params::{ParamError, Parameter, Params, Reader};

/// The parameters.
pub(in crate::policies) const PARAMETERS: &[Parameter] = &[
    Parameter::new("interval", 10.0, "s", "the longest time until the next run"),
    Parameter::new("least", 1.0, "s", "the shortest; slack below a quarter of it counts as none"),
    Parameter::new("hold", 1.1, "times", "factor in favour of the job that is served now"),
    Parameter::new("wait", 0.02, "node", "share of all waiting jobs together"),
    Parameter::new("theta", 0.05, "part", "how far a job of unknown size may fall behind"),
    Parameter::new("probe", 0.5, "s", "whole-node time after which a job counts as begun"),
    Parameter::new(
        "trust",
        1.25,
        "times",
        "use beyond this multiple of the stated size corrects it",
    ),
    Parameter::new("beyond", 3.0, "times", "use beyond this multiple makes the size unknown"),
    Parameter::new("doubt", 0.25, "times", "weight of such a job beside one that states nothing"),
    Parameter::new("early", 1.0, "ends", "value of an acceptable loss, relative to the end"),
    Parameter::new("mercy", 0.5, "part", "part of its share that services leave to training"),
    Parameter::new("prior", 5.0, "s", "the least work assumed for a job of unknown size"),
    Parameter::new("relax", 0.0, "part", "part of the fair time by which deadlines are extended"),
    Parameter::new(
        "whole",
        0.6,
        "node",
        "a job that can use more than this can use the whole node",
    ),
    Parameter::new("learn", 0.0, "ends", "value of each halving of the loss, relative to the end"),
];

/// The parameters in force, by their names.
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
