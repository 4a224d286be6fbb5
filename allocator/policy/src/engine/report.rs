//! What the engine goes by, of all that a job says.

use std::sync::Arc;

use paceline_wire::{Direction, Forecast, Progress, Targets};

use crate::frame::Reached;
use crate::unit::counter;

/// What a job's endpoint said, as far as anything here goes by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// New with every start of the job's process: when it changes, the counters began anew.
    pub instance: Arc<str>,
    /// Which way the loss is meant to go.
    pub direction: Direction,
    /// How many losses were reported, and their sum.
    pub losses: (u64, f64),
    /// The largest of them by absolute value.
    pub largest: Option<f64>,
    /// How many batches ended, and their total duration in seconds.
    pub batches: (u64, f64),
    /// The part of its steps that is done, where the job says how many there are to be.
    pub done: Option<f64>,
    /// How far its steps are.
    pub steps: Steps,
    /// Seconds between the reading that this is and the event that brings it.
    pub age: f64,
    /// What the job is asked to reach.
    pub targets: Targets,
    /// What of it has been.
    pub reached: Reached,
}

/// The optimizer steps of a job, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    /// Those that it has taken.
    pub taken: Option<u64>,
    /// How many it means to take.
    pub total: Option<u64>,
    /// How many it expects to take, where that is fewer.
    pub expected: Option<u64>,
    /// Those until its loss is acceptable, by its own forecast.
    pub to_acceptable: Option<f64>,
    /// Those until its objective.
    pub to_objective: Option<f64>,
}

impl Report {
    /// How many reports have come: a job may report losses, batches, or both at once.
    pub(super) fn reports(&self) -> u64 {
        self.losses.0.max(self.batches.0)
    }
}

impl From<&Progress> for Report {
    fn from(progress: &Progress) -> Self {
        let Progress { eval, batch_latency, reached, .. } = progress;
        Self {
            instance: progress.instance.as_str().into(),
            direction: eval.direction,
            losses: (eval.count, eval.sum),
            largest: eval.max_abs,
            batches: (batch_latency.count, batch_latency.sum),
            done: done(progress),
            steps: Steps::from(progress),
            age: 0.0,
            targets: progress.targets,
            reached: Reached {
                acceptable: reached.acceptable_at.is_some(),
                objective: reached.objective_at.is_some(),
            },
        }
    }
}

impl From<&Progress> for Steps {
    fn from(progress: &Progress) -> Self {
        let median = |forecast: Option<Forecast>| forecast?.steps?.median;
        Self {
            taken: progress.step,
            total: progress.total_steps,
            expected: progress.expected_steps,
            to_acceptable: median(progress.signals.to_acceptable),
            to_objective: median(progress.signals.to_objective),
        }
    }
}

fn done(progress: &Progress) -> Option<f64> {
    let total = progress.total_steps.filter(|total| *total > 0)?;
    let step = progress.step.unwrap_or(0).min(total);
    Some(counter(step) / counter(total))
}
