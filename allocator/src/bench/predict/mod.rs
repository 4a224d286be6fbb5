//! What the simulator says of a bench, fitted from the solo and `none` runs alone.

mod fidelity;
mod forecast;
mod others;
mod predictor;
mod repeat;
mod speed;
mod startup;
mod text;

use std::collections::BTreeMap;

use paceline_sim::bounds::Bound;
use serde::{Deserialize, Serialize};

pub(crate) use fidelity::Fidelity;
pub(crate) use forecast::Forecast;
pub(crate) use predictor::{Predictor, SIMULATIONS};

/// What a prediction was made from, and what is possible.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    /// Why there is none, if there is none.
    pub(crate) why_not: Option<String>,
    /// The runs that it was fitted from.
    pub(crate) from: Option<String>,
    /// By how much a neighbour of equal share makes most jobs' work longer, on average over the
    /// nodes; `None` if that cannot be told.
    pub(crate) contention: Option<f64>,
    /// The share of the machine that is used by whatever is no job, on average over the nodes.
    pub(crate) background: Option<f64>,
    /// The part of the machine's ups and downs, as the probe has them, that the jobs feel.
    #[serde(default)]
    pub(crate) speed_felt: Option<f64>,
    /// What no policy can beat on this machine, and what a schedule that knows the future reaches, by
    /// the names of the measures: the means over the repeats.
    pub(crate) bounds: BTreeMap<String, Bound>,
}

#[cfg(test)]
mod tests;
