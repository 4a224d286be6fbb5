//! The figures of each job of a run.

use paceline_policy::unit::counter;
use paceline_sim::outcome::JobOutcome;

use super::measure::Figures;
use super::trajectory::Trajectory;

/// A figure that each job has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobMeasure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    value: fn(&Trajectory, &JobOutcome) -> Option<f64>,
}

/// All figures of a job.
pub(crate) const JOB_MEASURES: &[JobMeasure] = &[
    measure("completion", "completion", "s", |_, job| job.completion()),
    measure("slowdown", "slow-down", "x", |_, job| job.slowdown()),
    measure("fairness", "finish-time fairness", "x", |_, job| job.fairness()),
    measure("acceptable", "time to acceptable", "s", |_, job| Some(job.acceptable? - job.arrived)),
    measure("objective", "time to objective", "s", |_, job| Some(job.objective? - job.arrived)),
    measure("loss_area", "area under loss", "s", |_, job| {
        Some(job.loss_area).filter(|area| *area > 0.0)
    }),
    measure("batch_latency", "batch latency", "s", |_, job| job.batch_latency),
    measure("writes", "limits written", "-", |trajectory, job| {
        Some(trajectory.overhead.as_ref()?.writes.get(&job.id).copied().unwrap_or_default())
    }),
    measure("moves", "moves", "-", |_, job| Some(counter(job.moves))),
];

const fn measure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    value: fn(&Trajectory, &JobOutcome) -> Option<f64>,
) -> JobMeasure {
    JobMeasure { name, title, unit, value }
}

/// The figures of the job at `place`.
pub(crate) fn job_figures(trajectory: &Trajectory, place: usize) -> Figures {
    let job = trajectory.outcome.jobs.get(place);
    let figure =
        |measure: &JobMeasure| (measure.value)(trajectory, job?).filter(|value| value.is_finite());
    JOB_MEASURES.iter().map(|measure| (measure.name.to_owned(), figure(measure))).collect()
}
