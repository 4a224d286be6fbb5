//! What runs are compared by.

use paceline_policy::unit::count;

use crate::number::position;
use crate::outcome::{JobOutcome, Outcome};

/// How far a batch may be from its target and still be satisfied: the papers' α.
const TOLERANCE: f64 = 0.1;

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, as it stands in JSON.
    pub name: &'static str,
    /// What it is called in tables.
    pub title: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// What it is.
    pub about: &'static str,
    of: fn(&Outcome) -> Option<f64>,
}

impl Metric {
    /// Its value for a run; `None` where the run has no such thing.
    pub fn of(&self, outcome: &Outcome) -> Option<f64> {
        (self.of)(outcome)
    }
}

/// All of them, in the order in which people see them.
pub const METRICS: &[Metric] = &[
    metric("completion_mean", "mean completion", "s", "from arrival to end, mean", |run| {
        mean(&completions(run))
    }),
    metric("completion_median", "median completion", "s", "from arrival to end, median", |run| {
        quantile(completions(run), 0.5)
    }),
    metric(
        "completion_p99",
        "p99 completion",
        "s",
        "from arrival to end, 99th percentile",
        |run| quantile(completions(run), 0.99),
    ),
    metric("makespan", "makespan", "s", "from the first arrival to the last end", |run| {
        let first = run.jobs.iter().map(|job| job.arrived).fold(f64::INFINITY, f64::min);
        let last = run.jobs.iter().filter_map(|job| job.finished).fold(f64::NAN, f64::max);
        (last - first).is_finite().then_some(last - first)
    }),
    metric("slowdown_mean", "mean slow-down", "x", "completion time over the time alone", |run| {
        mean(&slowdowns(run))
    }),
    metric("jain", "Jain's index", "-", "of time alone over completion time; 1 is fair", |run| {
        let speeds: Vec<f64> = slowdowns(run).iter().map(|slow| 1.0 / slow).collect();
        let squares: f64 = speeds.iter().map(|speed| speed * speed).sum();
        let sum: f64 = speeds.iter().sum();
        (squares > 0.0).then(|| sum * sum / (count(speeds.len()) * squares))
    }),
    metric("loss_area", "area under loss", "s", "time, by the part of the fall to come", |run| {
        let areas: Vec<f64> = run.jobs.iter().map(|job| job.loss_area).collect();
        mean(&areas).filter(|area| *area > 0.0)
    }),
    metric(
        "acceptable_mean",
        "time to acceptable",
        "s",
        "from arrival, of those that got there",
        |run| mean(&times_to(run, |job| job.acceptable)),
    ),
    metric(
        "objective_mean",
        "time to objective",
        "s",
        "from arrival, of those that got there",
        |run| mean(&times_to(run, |job| job.objective)),
    ),
    metric("satisfied", "satisfied", "jobs", "last batch within 10 % of its target", |run| {
        targets(run, |latency, target| (latency - target).abs() <= TOLERANCE * target)
    }),
    metric("met", "met", "jobs", "last batch at most 10 % over its target", |run| {
        targets(run, |latency, target| latency <= (1.0 + TOLERANCE) * target)
    }),
    metric(
        "distance",
        "distance to targets",
        "s",
        "sum of what batches differ by, but for the satisfied",
        |run| {
            let distance = |job: &JobOutcome| {
                let (latency, target) = job.batch_latency.zip(job.targets.batch_latency)?;
                let apart = (latency - target).abs();
                Some(if apart > TOLERANCE * target { apart } else { 0.0 })
            };
            let distances: Vec<f64> = run.jobs.iter().filter_map(distance).collect();
            (!distances.is_empty()).then(|| distances.iter().sum())
        },
    ),
    metric("utilisation", "utilisation", "%", "CPU time in use over what there was", |run| {
        Some(run.utilisation * 100.0)
    }),
    metric("stranded", "stranded", "%", "idle while a job was held back by its limit", |run| {
        Some(run.stranded * 100.0)
    }),
    metric("moves", "moves", "-", "jobs moved to another node", |run| {
        Some(run.jobs.iter().map(|job| paceline_policy::unit::counter(job.moves)).sum())
    }),
    metric("writes", "limit writes", "-", "limits and weights written", |run| {
        Some(run.jobs.iter().map(|job| paceline_policy::unit::counter(job.writes)).sum())
    }),
    metric("unfinished", "unfinished", "jobs", "not over when the run ended", |run| {
        Some(count(run.jobs.iter().filter(|job| job.finished.is_none()).count()))
    }),
];

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    of: fn(&Outcome) -> Option<f64>,
) -> Metric {
    Metric { name, title, unit, about, of }
}

fn completions(run: &Outcome) -> Vec<f64> {
    run.jobs.iter().filter_map(JobOutcome::completion).collect()
}

fn slowdowns(run: &Outcome) -> Vec<f64> {
    run.jobs.iter().filter_map(JobOutcome::slowdown).collect()
}

fn times_to(run: &Outcome, target: fn(&JobOutcome) -> Option<f64>) -> Vec<f64> {
    run.jobs.iter().filter_map(|job| Some(target(job)? - job.arrived)).collect()
}

/// How many jobs with a target of their batches keep it.
fn targets(run: &Outcome, keeps: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let with: Vec<(f64, f64)> = run
        .jobs
        .iter()
        .filter_map(|job| job.batch_latency.zip(job.targets.batch_latency))
        .collect();
    let kept = with.iter().filter(|(latency, target)| keeps(*latency, *target)).count();
    (!with.is_empty()).then(|| count(kept))
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count(numbers.len()))
}

/// The quantile of some numbers, between two of them where it lies between them.
fn quantile(mut numbers: Vec<f64>, part: f64) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let at = part * count(numbers.len().checked_sub(1)?);
    let low = *numbers.get(position(at))?;
    let high = numbers.get(position(at) + 1).copied().unwrap_or(low);
    Some(low + (high - low) * at.fract())
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval that holds the true mean with 95 % probability, by Student's
    /// t; `None` of one seed alone.
    pub half: Option<f64>,
}

/// t with 95 % between −t and t, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for more.
const NORMAL: f64 = 1.960;

impl Interval {
    /// Of one figure for each seed; `None` without any.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let middle = mean(figures)?;
        let freedom = figures.len() - 1;
        let half = (freedom > 0).then(|| {
            let squares: f64 = figures.iter().map(|figure| (figure - middle).powi(2)).sum();
            let t = STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL);
            t * (squares / count(freedom) / count(figures.len())).sqrt()
        });
        Some(Self { mean: middle, half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Outcome {
        let job = |id: &str, arrived, finished, alone| JobOutcome {
            id: id.to_owned(),
            arrived,
            finished: Some(finished),
            alone: Some(alone),
            batch_latency: Some(finished / 10.0),
            ..JobOutcome::default()
        };
        let mut jobs = vec![job("a", 0.0, 40.0, 20.0), job("b", 10.0, 30.0, 20.0)];
        jobs[0].targets.batch_latency = Some(4.2);
        jobs[1].targets.batch_latency = Some(6.0);
        jobs[0].acceptable = Some(12.0);
        Outcome { jobs, utilisation: 0.5, ..Outcome::default() }
    }

    fn figure(name: &str) -> Option<f64> {
        METRICS.iter().find(|metric| metric.name == name).unwrap().of(&run())
    }

    #[test]
    fn figures_are_what_their_names_say() {
        for (name, value) in [
            ("completion_mean", 30.0),
            ("completion_median", 30.0),
            ("completion_p99", 39.8),
            ("makespan", 40.0),
            ("slowdown_mean", 1.5),
            ("jain", 2.25 / 2.5),
            ("acceptable_mean", 12.0),
            ("satisfied", 1.0),
            ("met", 2.0),
            ("distance", 3.0),
            ("utilisation", 50.0),
            ("moves", 0.0),
            ("unfinished", 0.0),
        ] {
            let got = figure(name).unwrap();
            assert!((got - value).abs() < 1e-9, "{name}: {got}");
        }
        assert_eq!((figure("objective_mean"), figure("loss_area")), (None, None));
    }

    #[test]
    fn an_interval_is_students() {
        let interval = Interval::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((interval.mean - 2.0).abs() < 1e-12);
        assert!((interval.half.unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Interval::of(&[5.0]).unwrap().half, None);
        assert_eq!(Interval::of(&[]), None);
    }
}
