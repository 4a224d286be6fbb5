//! From what was observed to the figures: no clock, no engine; files are read by [`Observed`] alone.
//!
//! All times of a result are seconds; those of a job count from its arrival unless said otherwise.

mod arm;
mod course;
mod figure;
mod ground;
mod judge;
mod measure;
mod observed;
mod of_job;
mod together;
mod upkeep;

use std::collections::BTreeMap;

use paceline_policy::Variant;
use paceline_policy::limiter::Enforcement;
use serde::{Deserialize, Serialize};

use super::claims::Compared;
use super::machine::Machine;
use super::predict::Prediction;
use super::schedule::Job;
use crate::migrate::Means;

pub(crate) use arm::{ArmFindings, Both, JobFindings, RunFindings};
pub(crate) use course::{Course, mean, moved, samples_of};
pub(crate) use figure::Figure;
pub(crate) use ground::Ground;
#[cfg(test)]
pub(crate) use judge::judge_by;
pub(crate) use judge::{Judged, Measured, judge};
pub(crate) use measure::{Figures, MEASURES, Measure, figures};
pub(crate) use observed::{Observed, frames};
pub(crate) use of_job::{OF_JOBS, job_figures};
pub(crate) use together::Together;

/// The policy that the others are compared with: what happens without an allocator.
pub(crate) const BASELINE: &str = "none";
/// What is no policy: the best order, which knows the future, driven live.
pub(crate) const ORACLE: &str = "oracle";

/// All that a bench found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Findings {
    #[serde(flatten)]
    pub(crate) about: About,
    /// In the schedule's order.
    pub(crate) arms: Vec<ArmFindings>,
    /// How well the jobs share the machine under `none`; needs `none` and two jobs with a rate.
    pub(crate) together: Option<Together>,
    /// What the simulator makes of the solo and `none` runs.
    pub(crate) prediction: Prediction,
    /// What papers print, beside what came of it here.
    pub(crate) claims: Vec<Compared>,
}

/// What was run, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The schedule's name.
    pub(crate) name: String,
    /// The schedule's description.
    pub(crate) description: String,
    /// Names this bench: its containers were labelled with it.
    pub(crate) run: String,
    /// When it began, in UTC.
    pub(crate) date: String,
    pub(crate) machine: Machine,
    /// The folder, by its name, that jobs had as /data.
    #[serde(default)]
    pub(crate) data: Option<String>,
    /// The paper's times over these.
    pub(crate) scale: f64,
    /// Seconds after which jobs that still ran were stopped.
    pub(crate) until: Option<f64>,
    pub(crate) jobs: Vec<JobFacts>,
}

impl About {
    /// The machine, and what its jobs trained on, in a few words.
    pub(crate) fn place(&self) -> String {
        let data = self.data.as_ref().map(|data| format!(", data {data}"));
        self.machine.words() + &data.unwrap_or_default()
    }
}

/// An arm as the schedule has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArmFacts {
    /// Its name: no other arm has it.
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) variant: Variant,
    pub(crate) enforcement: Enforcement,
    /// How jobs move between nodes, where it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<Means>,
    /// The policy's parameters, where they are not as by default.
    pub(crate) params: BTreeMap<String, f64>,
}

/// A job of the schedule and what the calibration made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFacts {
    #[serde(flatten)]
    pub(crate) job: Job,
    /// Steps per second with the machine for itself.
    pub(crate) solo_rate: Option<f64>,
    /// The steps that it did in each run.
    pub(crate) steps: Option<u64>,
}

impl JobFacts {
    /// The job's facts, given its rate with the machine for itself.
    pub(crate) fn new(job: &Job, solo_rate: Option<f64>) -> Self {
        let steps = job.work.zip(solo_rate).map(|(work, rate)| whole_steps(work * rate));
        Self { job: job.clone(), solo_rate, steps }
    }

    /// Whether a larger loss is the better one.
    pub(crate) fn upwards(&self) -> bool {
        self.job.labels.get("paceline.direction").is_some_and(|direction| direction == "maximize")
    }
}

impl Findings {
    /// The arm that the others are compared with.
    pub(crate) fn baseline(&self) -> Option<&ArmFindings> {
        self.arms.iter().find(|arm| arm.facts.policy == BASELINE)
    }

    /// The measures that some arm has a figure of.
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
