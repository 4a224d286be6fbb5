//! The figures that each job of a run has.

use paceline_policy::unit::counter;
use paceline_sim::outcome::JobOutcome;

use super::course::Course;
use super::measure::Figures;

/// A figure that each job has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfJob {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    of: fn(&Course, &JobOutcome) -> Option<f64>,
}

/// All of those.
pub(crate) const OF_JOBS: &[OfJob] = &[
    of_job("completion", "completion", "s", |_, job| job.completion()),
    of_job("slowdown", "slow-down", "x", |_, job| job.slowdown()),
    of_job("fairness", "finish-time fairness", "x", |_, job| job.fairness()),
    of_job("acceptable", "time to acceptable", "s", |_, job| Some(job.acceptable? - job.arrived)),
    of_job("objective", "time to objective", "s", |_, job| Some(job.objective? - job.arrived)),
    of_job("loss_area", "area under loss", "s", |_, job| {
        Some(job.loss_area).filter(|area| *area > 0.0)
    }),
    of_job("batch_latency", "a batch", "s", |_, job| job.batch_latency),
    of_job("writes", "limits written", "-", |course, job| {
        Some(course.upkeep.as_ref()?.writes.get(&job.id).copied().unwrap_or_default())
    }),
    of_job("moves", "moves", "-", |_, job| Some(counter(job.moves))),
];

const fn of_job(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: fn(&Course, &JobOutcome) -> Option<f64>,
) -> OfJob {
    OfJob { name, title, unit, of }
}

/// The figures of the job at `place`.
pub(crate) fn job_figures(course: &Course, place: usize) -> Figures {
    let job = course.outcome.jobs.get(place);
    let figure = |of_job: &OfJob| (of_job.of)(course, job?).filter(|value| value.is_finite());
    OF_JOBS.iter().map(|of_job| (of_job.name.to_owned(), figure(of_job))).collect()
}
