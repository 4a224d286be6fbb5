//! From observed runs to figures. Uses no clock and no engine; only [`Observed`] reads files.
//!
//! All times of a result are seconds. A job's times count from its arrival unless stated otherwise.
//!
//! A run becomes the simulator's own `Outcome`, measured or simulated, so each figure has one
//! definition. What only a real run has (writes, reactions, stolen time) is in `MEASURES`.
//! `ArmFindings` joins the repeats: means, intervals, and differences from `none` repeat by repeat.
//! They leave out runs that other work disturbed. Where an arm has only such runs, its means are
//! marked and have no interval, and neither claims nor predictions use them.

mod arm;
mod figure;
mod found;
mod interference;
mod job_measure;
mod measure;
mod observed;
mod overhead;
mod reference_times;
mod trajectory;

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::schedule::Job;

pub(crate) use arm::{ArmFindings, Both, JobFindings, RunFindings};
pub(crate) use figure::Figure;
pub(crate) use found::{
    Compared, Fidelity, JobFidelity, Multiple, Prediction, Promise, Regression, RunPromise,
};
pub(crate) use interference::{Interference, interference};
pub(crate) use job_measure::{JOB_MEASURES, job_figures};
pub(crate) use measure::{Figures, MEASURES, Measure, figures};
pub(crate) use observed::{Measured, Observed, frames};
pub(crate) use reference_times::ReferenceTimes;
pub(crate) use trajectory::{Trajectory, mean, samples_of, shifted};

/// The policy that the others are compared with: it decides nothing, as without an allocator.
pub(crate) const BASELINE: &str = "none";
/// The arm that knows each job's work, and runs the job with the least work left: a reference, not a policy.
pub(crate) const ORACLE: &str = "oracle";

/// All results of a bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Findings {
    #[serde(flatten)]
    pub(crate) about: About,
    /// In the schedule's order.
    pub(crate) arms: Vec<ArmFindings>,
    /// How well the jobs share the machine under `none`; needs `none` and two jobs with a rate.
    #[serde(rename = "together")]
    pub(crate) interference: Option<Interference>,
    /// The prediction, fitted to the solo runs and those of `none`.
    pub(crate) prediction: Prediction,
    /// The papers' claims beside the results here.
    pub(crate) claims: Vec<Compared>,
}

/// What was run, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The schedule's name.
    pub(crate) name: String,
    /// The schedule's description.
    pub(crate) description: String,
    /// Identifies this bench: its containers have it as a label.
    pub(crate) run: String,
    /// When it began, in UTC.
    pub(crate) date: String,
    pub(crate) machine: Machine,
    /// The name of the folder that jobs had as `/data`.
    #[serde(default)]
    pub(crate) data: Option<String>,
    /// The paper's times divided by these.
    pub(crate) scale: f64,
    /// Seconds after which running jobs were stopped.
    pub(crate) until: Option<f64>,
    pub(crate) jobs: Vec<JobFacts>,
}

impl About {
    /// The machine and the data, in a few words.
    pub(crate) fn place(&self) -> String {
        let data = self.data.as_ref().map(|data| format!(", data {data}"));
        self.machine.words() + &data.unwrap_or_default()
    }
}

/// A job of the schedule, with the results of the calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFacts {
    #[serde(flatten)]
    pub(crate) job: Job,
    /// Steps per second when alone on the machine.
    pub(crate) solo_rate: Option<f64>,
    /// The steps that it does in each run.
    pub(crate) steps: Option<u64>,
}

impl JobFacts {
    /// The job's facts, given its rate when alone on the machine.
    pub(crate) fn new(job: &Job, solo_rate: Option<f64>) -> Self {
        let steps = job.work.zip(solo_rate).map(|(work, rate)| whole_steps(work * rate));
        Self { job: job.clone(), solo_rate, steps }
    }

    /// Whether a larger loss is better.
    pub(crate) fn upwards(&self) -> bool {
        self.job.labels.get("paceline.direction").is_some_and(|direction| direction == "maximize")
    }
}

impl Findings {
    /// The arm that the others are compared with.
    pub(crate) fn baseline(&self) -> Option<&ArmFindings> {
        self.arms.iter().find(|arm| arm.facts.policy == BASELINE)
    }

    /// The measures that some arm has.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &'static Measure> {
        let known =
            |measure: &&Measure| self.arms.iter().any(|arm| arm.figure(measure.name).is_some());
        MEASURES.iter().filter(known)
    }
}

/// The nearest whole number of steps, at least one.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is at least 1, and the conversion saturates"
)]
fn whole_steps(steps: f64) -> u64 {
    steps.round().max(1.0) as u64
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod tests;
