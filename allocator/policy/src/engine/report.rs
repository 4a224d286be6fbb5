//! The part of a job's progress that the engine uses.

use std::sync::Arc;

use paceline_wire::{Direction, Forecast, Progress, Targets};

use crate::frame::Reached;
use crate::unit::counter;

/// One answer of a job's endpoint, reduced to what the engine uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// New with every start of the job's process: when it changes, the counters have restarted.
    pub instance: Arc<str>,
    /// The direction in which the loss improves.
    pub direction: Direction,
    /// The number of losses reported, and their sum.
    pub losses: (u64, f64),
    /// The largest of them by absolute value.
    pub largest: Option<f64>,
    /// The number of batches that ended, and their total duration in seconds.
    pub batches: (u64, f64),
    /// The fraction of its steps that is done, if the job reports a total.
    pub done: Option<f64>,
    /// Its steps.
    pub steps: Steps,
    /// The age of this reading when its event arrives, in seconds.
    pub age: f64,
    /// The targets that the job knows.
    pub targets: Targets,
    /// The targets that it reports as reached.
    pub reached: Reached,
}

/// The optimizer steps of a job, as far as it reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    /// The steps that it has taken.
    pub taken: Option<u64>,
    /// The steps that it plans to take.
    pub total: Option<u64>,
    /// The steps that it expects to take, if fewer.
    pub expected: Option<u64>,
    /// The steps until its loss is acceptable, by its own forecast.
    pub to_acceptable: Option<f64>,
    /// The steps until its objective, by its own forecast.
    pub to_objective: Option<f64>,
}

impl Report {
    /// The number of reports so far: a job may report losses, batches, or both at once.
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
