//! How close a prediction comes: to the arm's figures, compared with their spread, and to each job's.

use super::super::outcome::{
    ArmFindings, Both, Fidelity, JobFidelity, JobFindings, RunFindings, job_figures, mean,
};
use super::predictor::Trajectories;

/// A figure's prediction holds if its relative error is at most this, or at most the arm's spread.
const MAX_ERROR: f64 = 0.05;
/// A job's prediction holds if the median of its repeats' relative errors is at most this.
const MAX_JOB_ERROR: f64 = 0.1;

/// The judged figures, each with the corresponding figure of jobs.
const JUDGED: &[(&str, Option<&str>)] = &[
    ("completion_mean", Some("completion")),
    ("acceptable_mean", Some("acceptable")),
    ("objective_mean", Some("objective")),
    ("satisfied", None),
    ("met", None),
];

impl Fidelity {
    /// The fidelity of each judged figure that the arm has; `trajectories` are its simulated runs.
    pub(super) fn all(arm: &ArmFindings, trajectories: &Trajectories) -> Vec<Self> {
        JUDGED
            .iter()
            .filter_map(|(name, of_jobs)| Self::new(arm, trajectories, name, *of_jobs))
            .collect()
    }

    fn new(
        arm: &ArmFindings,
        trajectories: &Trajectories,
        name: &str,
        of_jobs: Option<&str>,
    ) -> Option<Self> {
        let pairs = pairs(arm.counted().map(|run| run.both(name)))?;
        let (measured, predicted): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (measured, predicted) = (mean(&measured)?, mean(&predicted)?);
        let base = if of_jobs.is_some() { measured } else { with_target(arm) };
        if base <= 0.0 {
            return None;
        }
        let error = (predicted - measured) / base;
        let spread = spread(&pairs).map(|spread| spread / base);
        let jobs: Vec<JobFidelity> =
            of_jobs.map(|name| of_each_job(arm, trajectories, name)).unwrap_or_default();
        let near = |job: &JobFidelity| job.error.abs() <= MAX_JOB_ERROR;
        Some(Self {
            figure: name.to_owned(),
            measured,
            predicted,
            error,
            spread,
            holds: error.abs() <= spread.unwrap_or(0.0).max(MAX_ERROR),
            jobs_hold: (!jobs.is_empty()).then(|| jobs.iter().all(near)),
            jobs,
        })
    }

    /// The job with the largest error.
    pub(crate) fn worst(&self) -> Option<&JobFidelity> {
        self.jobs.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))
    }
}

/// How many jobs have a batch latency that can be compared with a target.
fn with_target(arm: &ArmFindings) -> f64 {
    let with = arm.jobs.iter().filter(|job| job.figure("batch_latency").is_some());
    paceline_policy::unit::count(with.count())
}

fn of_each_job(arm: &ArmFindings, trajectories: &Trajectories, name: &str) -> Vec<JobFidelity> {
    let one = |(place, job): (usize, &JobFindings)| {
        let of_repeat = |repeat: u32| {
            let own = trajectories.iter().filter(|((its, _), _)| *its == repeat);
            median_with_never(
                own.map(|(_, trajectory)| job_figures(trajectory, place).get(name).copied()?),
            )
        };
        let both =
            |run: &RunFindings| Some((run.both_of_job(place, name).0?, of_repeat(run.repeat)));
        let repeats: Vec<(f64, Option<f64>)> = arm.counted().filter_map(both).collect();
        let measured = median(repeats.iter().map(|(own, _)| *own).collect())?;
        let predicted = median_with_never(repeats.iter().map(|(_, predicted)| *predicted))?;
        let error = error(&repeats)?;
        let pairs: Option<Vec<(f64, f64)>> =
            repeats.into_iter().map(|(own, predicted)| Some((own, predicted?))).collect();
        let spread = pairs.and_then(|pairs| spread(&pairs)).map(|spread| spread / measured);
        Some(JobFidelity { job: job.job.clone(), measured, predicted, error, spread })
    };
    arm.jobs.iter().enumerate().filter_map(one).collect()
}

/// The median error of the repeats, each given as measured and predicted value. A prediction is `None` if the
/// event never comes.
fn error(repeats: &[(f64, Option<f64>)]) -> Option<f64> {
    median_with_never(
        repeats.iter().map(|(measured, predicted)| Some((*predicted)? / measured - 1.0)),
    )
}

/// The largest deviation of an error from the mean error; `None` for a single pair.
fn spread(pairs: &[(f64, f64)]) -> Option<f64> {
    let off: Vec<f64> = pairs.iter().map(|(measured, predicted)| measured - predicted).collect();
    let all = mean(&off).filter(|_| off.len() > 1)?;
    Some(off.into_iter().map(|off| (off - all).abs()).fold(0.0, f64::max))
}

/// The measured and predicted values of the runs that have the figure. `None` if no run has it, or if one
/// of them has no prediction.
pub(super) fn pairs(runs: impl Iterator<Item = Both>) -> Option<Vec<(f64, f64)>> {
    let pair = |(measured, predicted): Both| measured.map(|own| Some((own, predicted?)));
    let found: Option<Vec<(f64, f64)>> = runs.filter_map(pair).collect();
    found.filter(|pairs| !pairs.is_empty())
}

/// The median of optional values: `None`, an event that never comes, counts as infinite.
fn median_with_never(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values = values.map(|value| value.unwrap_or(f64::INFINITY)).collect();
    median(values).filter(|value| value.is_finite())
}

/// The median: the middle value, or the mean of the two middle values.
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
    fn median_is_the_middle_value_or_their_mean() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn event_that_never_comes_counts_as_infinite() {
        assert_eq!(median_with_never([None, Some(1.0), Some(2.0)].into_iter()), Some(2.0));
        assert_eq!(median_with_never([None, None, Some(2.0)].into_iter()), None);
    }

    /// With drawn arrivals, a job that arrives late in one repeat may arrive early in another.
    #[test]
    fn prediction_is_compared_with_its_own_repeat() {
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
            let median = median(values.clone()).unwrap();
            let below = values.iter().filter(|value| **value < median).count();
            let above = values.iter().filter(|value| **value > median).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
