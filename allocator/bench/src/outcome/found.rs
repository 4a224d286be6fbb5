//! Results beyond the measurements: plain values of predictions, comparisons and explanations.

use std::collections::BTreeMap;

use paceline_sim::bounds::Bound;
use paceline_sim::claims::{Claim, Verdict};
use paceline_sim::metrics::Interval;
use serde::{Deserialize, Serialize};

/// What the prediction is based on, and the bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    /// Why the prediction is missing, if it is.
    pub(crate) why_not: Option<String>,
    /// The runs that it was fitted from.
    pub(crate) from: Option<String>,
    /// By which fraction a neighbour of equal share makes most jobs' work longer, averaged over the
    /// nodes; `None` if unknown.
    pub(crate) contention: Option<f64>,
    /// The share of the machine that other work than jobs uses, averaged over the nodes.
    pub(crate) background: Option<f64>,
    /// How strongly the jobs' speed follows the probe's, from 0 to 1.
    #[serde(default, rename = "speed_felt")]
    pub(crate) speed_sensitivity: Option<f64>,
    /// Bounds by the names of the measures, averaged over the repeats. Each has the limit that no policy can
    /// beat, and the value that a schedule with foresight reaches.
    pub(crate) bounds: BTreeMap<String, Bound>,
}

/// One figure's prediction beside its measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fidelity {
    /// The measure's name.
    pub(crate) figure: String,
    pub(crate) measured: f64,
    pub(crate) predicted: f64,
    /// The prediction minus the measurement, as a fraction of the measurement. For a number of jobs, as a
    /// fraction of the jobs with a target.
    pub(crate) error: f64,
    /// The spread of the arm's repeats, as the same fraction: the largest deviation of a repeat's error from
    /// the mean error.
    pub(crate) spread: Option<f64>,
    /// Whether the error is within 5 % or the spread.
    pub(crate) holds: bool,
    /// The jobs that have this figure.
    pub(crate) jobs: Vec<JobFidelity>,
    /// Whether every job's error is within 10 %; `None` without jobs.
    pub(crate) jobs_hold: Option<bool>,
}

/// One job's prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFidelity {
    pub(crate) job: String,
    /// The median of the repeats.
    pub(crate) measured: f64,
    /// The median over the repeats of the simulator's median for each.
    pub(crate) predicted: f64,
    /// The median of the repeats' errors, each against the prediction for that repeat. With drawn arrivals
    /// each repeat is another workload, so the two medians above may come from different ones.
    pub(crate) error: f64,
    /// The largest deviation of a repeat's error from the mean error, as a fraction of the median.
    #[serde(default)]
    pub(crate) spread: Option<f64>,
}

/// How long each job took, as a multiple of its time under `none`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Promise {
    /// The largest multiple that keeps the promise.
    pub(crate) bound: f64,
    /// In the schedule's order.
    pub(crate) jobs: Vec<Multiple>,
    /// Each undisturbed run in which all jobs ended, compared with that of `none` in the same repeat, which
    /// has the same arrivals.
    #[serde(default)]
    pub(crate) runs: Vec<RunPromise>,
    /// The undisturbed repeats that are not judged, because a job did not end under this policy or under
    /// `none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unjudged: Vec<u32>,
    /// Jobs that did not end in some undisturbed run under this policy, or in that of `none` in the same
    /// repeat.
    pub(crate) without_end: Vec<String>,
    /// Whether the promise was kept; `None` if other work disturbed every run, or a job did not end.
    pub(crate) kept: Option<bool>,
}

/// One job's completion time divided by that under `none`; both are means over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Multiple {
    pub(crate) job: String,
    pub(crate) multiple: f64,
}

/// The promise in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunPromise {
    pub(crate) repeat: u32,
    /// The job with the largest multiple.
    pub(crate) largest: Multiple,
    pub(crate) kept: bool,
}

/// Why an arm is worse than `none` or than printed: one decision that cost a job much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Regression {
    /// The figure that is worse, as a sentence.
    #[serde(rename = "occasion")]
    pub(crate) symptom: String,
    /// The decision, its reason and its consequences.
    pub(crate) sentences: Vec<String>,
}

/// One printed figure beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) claim: Claim,
    /// The arm that it is compared with.
    pub(crate) arm: Option<String>,
    /// Over the repeats, in the paper's times.
    pub(crate) measured: Option<Interval>,
    /// The simulator's figure of the same arm on this machine.
    pub(crate) simulated: Option<f64>,
    /// The bound that no policy can beat.
    pub(crate) bound: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Why the verdict does not count, if runs were disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_judged: Option<String>,
    /// Why the figures differ, if they do.
    pub(crate) reason: String,
}
