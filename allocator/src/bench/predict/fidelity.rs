//! How near a prediction comes: to the arm within its own spread, and to each job.

use serde::{Deserialize, Serialize};

use super::super::outcome::{ArmFindings, Both, JobFindings, RunFindings, job_figures, mean};
use super::predictor::Courses;

/// A figure's prediction is near enough within this part of it, or within the arm's own spread.
const NEAR: f64 = 0.05;
/// A job's, if the error in the middle of its repeats' is within this part.
const NEAR_JOB: f64 = 0.1;

/// The figures that are judged, and those of the jobs that belong to them.
const JUDGED: &[(&str, Option<&str>)] = &[
    ("completion_mean", Some("completion")),
    ("acceptable_mean", Some("acceptable")),
    ("objective_mean", Some("objective")),
    ("satisfied", None),
    ("met", None),
];

/// One figure's prediction beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fidelity {
    /// The measure's name.
    pub(crate) figure: String,
    pub(crate) measured: f64,
    pub(crate) predicted: f64,
    /// By which part of what was measured the prediction is over it; of a number of jobs, of all that
    /// have a target.
    pub(crate) error: f64,
    /// The arm's own spread, in the same parts: how far the farthest repeat is off the mean, but for
    /// what its own arrivals account for.
    pub(crate) spread: Option<f64>,
    /// Whether the error is within a twentieth or the spread.
    pub(crate) holds: bool,
    /// Each job that has such a figure.
    pub(crate) jobs: Vec<JobFidelity>,
    /// Whether every job's error is within a tenth; `None` without jobs.
    pub(crate) jobs_hold: Option<bool>,
}

/// One job's prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFidelity {
    pub(crate) job: String,
    /// The median of the repeats, and that of the medians that the simulator has of each.
    pub(crate) measured: f64,
    pub(crate) predicted: f64,
    /// The median of the repeats' errors, each held against what is predicted of that repeat: drawn arrivals
    /// make each another workload, and the medians may be of two of them.
    pub(crate) error: f64,
    /// How far the farthest repeat is off its prediction, but for what all are off, as a part of the median.
    #[serde(default)]
    pub(crate) spread: Option<f64>,
}

impl Fidelity {
    /// Of all figures that are judged and that the arm has; `courses` are what is predicted.
    pub(super) fn all(arm: &ArmFindings, courses: &Courses) -> Vec<Self> {
        JUDGED.iter().filter_map(|(name, of_jobs)| Self::of(arm, courses, name, *of_jobs)).collect()
    }

    fn of(arm: &ArmFindings, courses: &Courses, name: &str, of_jobs: Option<&str>) -> Option<Self> {
        let pairs = pairs(arm.counted().map(|run| run.both(name)))?;
        let (measured, predicted): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (measured, predicted) = (mean(&measured)?, mean(&predicted)?);
        let whole = if of_jobs.is_some() { measured } else { with_target(arm) };
        if whole <= 0.0 {
            return None;
        }
        let error = (predicted - measured) / whole;
        let spread = spread(&pairs).map(|spread| spread / whole);
        let jobs: Vec<JobFidelity> =
            of_jobs.map(|name| of_each_job(arm, courses, name)).unwrap_or_default();
        let near = |job: &JobFidelity| job.error.abs() <= NEAR_JOB;
        Some(Self {
            figure: name.to_owned(),
            measured,
            predicted,
            error,
            spread,
            holds: error.abs() <= spread.unwrap_or(0.0).max(NEAR),
            jobs_hold: (!jobs.is_empty()).then(|| jobs.iter().all(near)),
            jobs,
        })
    }

    /// The job whose prediction is farthest off.
    pub(crate) fn worst(&self) -> Option<&JobFidelity> {
        self.jobs.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))
    }
}

/// How many jobs have a batch that could be held against its target.
fn with_target(arm: &ArmFindings) -> f64 {
    let with = arm.jobs.iter().filter(|job| job.figure("batch_latency").is_some());
    paceline_policy::unit::count(with.count())
}

fn of_each_job(arm: &ArmFindings, courses: &Courses, name: &str) -> Vec<JobFidelity> {
    let one = |(place, job): (usize, &JobFindings)| {
        let of_repeat = |repeat: u32| {
            let own = courses.iter().filter(|((its, _), _)| *its == repeat);
            middle(own.map(|(_, course)| job_figures(course, place).get(name).copied()?))
        };
        let both =
            |run: &RunFindings| Some((run.both_of_job(place, name).0?, of_repeat(run.repeat)));
        let repeats: Vec<(f64, Option<f64>)> = arm.counted().filter_map(both).collect();
        let measured = median(repeats.iter().map(|(own, _)| *own).collect())?;
        let predicted = middle(repeats.iter().map(|(_, said)| *said))?;
        let error = error(&repeats)?;
        let pairs: Option<Vec<(f64, f64)>> =
            repeats.into_iter().map(|(own, said)| Some((own, said?))).collect();
        let spread = pairs.and_then(|pairs| spread(&pairs)).map(|spread| spread / measured);
        Some(JobFidelity { job: job.job.clone(), measured, predicted, error, spread })
    };
    arm.jobs.iter().enumerate().filter_map(one).collect()
}

/// The error in the middle of the repeats', each of what was measured and what is predicted, if it ever comes.
fn error(repeats: &[(f64, Option<f64>)]) -> Option<f64> {
    middle(repeats.iter().map(|(measured, predicted)| Some((*predicted)? / measured - 1.0)))
}

/// How far the farthest of what was measured is off its prediction, but for what all are off on average;
/// `None` of one alone.
fn spread(pairs: &[(f64, f64)]) -> Option<f64> {
    let off: Vec<f64> = pairs.iter().map(|(measured, predicted)| measured - predicted).collect();
    let all = mean(&off).filter(|_| off.len() > 1)?;
    Some(off.into_iter().map(|off| (off - all).abs()).fold(0.0, f64::max))
}

/// What was measured and what is predicted of the runs that have such a figure; `None` if none has,
/// or if one of them has no prediction.
pub(super) fn pairs(runs: impl Iterator<Item = Both>) -> Option<Vec<(f64, f64)>> {
    let pair = |(measured, predicted): Both| measured.map(|own| Some((own, predicted?)));
    let found: Option<Vec<(f64, f64)>> = runs.filter_map(pair).collect();
    found.filter(|pairs| !pairs.is_empty())
}

/// The median where some may have none: what never comes is later than anything.
fn middle(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values = values.map(|value| value.unwrap_or(f64::INFINITY)).collect();
    median(values).filter(|value| value.is_finite())
}

/// The one in the middle, or the mean of the two there.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get(values.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn what_never_comes_is_later_than_anything() {
        assert_eq!(middle([None, Some(1.0), Some(2.0)].into_iter()), Some(2.0));
        assert_eq!(middle([None, None, Some(2.0)].into_iter()), None);
    }

    /// Drawn arrivals: what comes late in one repeat comes early in another.
    #[test]
    fn a_prediction_is_held_against_its_own_repeat() {
        let near = |repeats: &[(f64, Option<f64>)], expected: f64| {
            error(repeats).is_some_and(|error| (error - expected).abs() < 1e-9)
        };
        assert!(near(&[(10.0, Some(12.0)), (20.0, Some(11.0)), (30.0, Some(31.5))], 0.05));
        assert!(near(&[(10.0, None), (20.0, Some(22.0)), (30.0, Some(30.0))], 0.1));
        assert_eq!(error(&[(10.0, None), (20.0, None), (30.0, Some(30.0))]), None);
    }

    proptest! {
        #[test]
        fn half_of_the_values_are_on_either_side_of_their_median(
            values in prop::collection::vec(-100.0..100.0, 1..20),
        ) {
            let middle = median(values.clone()).unwrap();
            let below = values.iter().filter(|value| **value < middle).count();
            let above = values.iter().filter(|value| **value > middle).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
