//! The metrics that runs are compared by.

use paceline_policy::reason::dqoes::Set;
use paceline_policy::unit::{count, counter};

pub use crate::interval::Interval;
use crate::outcome::{JobOutcome, Outcome};
use crate::satisfaction::set_of;
use crate::stats::{mean, quantile};

/// Above this ρ a job counts as treated unfairly: it takes a tenth longer than with equal shares.
/// That leaves a policy some room to learn about its jobs.
const UNFAIR: f64 = 1.1;

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in JSON.
    pub name: &'static str,
    /// Its title in tables.
    pub title: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Which values are better.
    pub better: Better,
    /// Whether it ignores unfinished jobs, so that a run that was cut short looks better than it
    /// is.
    pub finished_only: bool,
    of: fn(&Outcome) -> Option<f64>,
}

/// Which of two values of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The smaller one.
    Less,
    /// The larger one.
    More,
}

impl Metric {
    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    const fn more_is_better(mut self) -> Self {
        self.better = Better::More;
        self
    }

    const fn finished_only(mut self) -> Self {
        self.finished_only = true;
        self
    }

    /// Its value for a run; `None` if the run does not have it.
    pub fn of(&self, outcome: &Outcome) -> Option<f64> {
        (self.of)(outcome)
    }

    /// Whether its value for a run leaves out jobs that did not finish.
    pub fn leaves_out_jobs(&self, outcome: &Outcome) -> bool {
        self.finished_only && outcome.cuts_off_jobs()
    }
}

/// All metrics, in the order of tables.
pub const METRICS: &[Metric] = &[
    metric("completion_mean", "mean completion", "s", "from arrival to end, mean", |run| {
        mean(&completions(run))
    })
    .finished_only(),
    metric("completion_median", "median completion", "s", "from arrival to end, median", |run| {
        quantile(completions(run), 0.5)
    })
    .finished_only(),
    metric(
        "completion_p99",
        "p99 completion",
        "s",
        "from arrival to end, 99th percentile",
        |run| quantile(completions(run), 0.99),
    )
    .finished_only(),
    metric("makespan", "makespan", "s", "from the first arrival to the last end", |run| {
        let first = run.jobs.iter().map(|job| job.arrived).fold(f64::INFINITY, f64::min);
        let last = run.jobs.iter().filter_map(|job| job.finished).fold(f64::NAN, f64::max);
        (last - first).is_finite().then_some(last - first)
    })
    .finished_only(),
    metric("slowdown_mean", "mean slow-down", "x", "completion time over the time alone", |run| {
        mean(&slowdowns(run))
    })
    .finished_only(),
    metric("fairness_worst", "worst fairness", "x", "finish-time fairness ρ, the largest", |run| {
        fairness(run).into_iter().max_by(f64::total_cmp)
    })
    .finished_only(),
    metric("fairness_mean", "mean fairness", "x", "finish-time fairness ρ, the mean", |run| {
        mean(&fairness(run))
    })
    .finished_only(),
    metric("unfair", "unfair", "%", "jobs whose finish-time fairness ρ is over 1.1", |run| {
        let all = fairness(run);
        let unfair = all.iter().filter(|fairness| **fairness > UNFAIR).count();
        (!all.is_empty()).then(|| 100.0 * count(unfair) / count(all.len()))
    })
    .finished_only(),
    metric("jain", "Jain's index", "-", "of time alone over completion time; 1 is fair", |run| {
        let speeds: Vec<f64> = slowdowns(run).iter().map(|slow| 1.0 / slow).collect();
        let squares: f64 = speeds.iter().map(|speed| speed * speed).sum();
        let sum: f64 = speeds.iter().sum();
        (squares > 0.0).then(|| sum * sum / (count(speeds.len()) * squares))
    })
    .finished_only()
    .more_is_better(),
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
    )
    .finished_only(),
    metric(
        "objective_mean",
        "time to objective",
        "s",
        "from arrival, of those that got there",
        |run| mean(&times_to(run, |job| job.objective)),
    )
    .finished_only(),
    metric("satisfied", "satisfied", "jobs", "S: last batch within 10 % of its target", |run| {
        targets(run, |set| set == Set::Satisfied)
    })
    .more_is_better(),
    metric("met", "met", "jobs", "S and G: last batch at most 10 % over its target", |run| {
        targets(run, |set| set != Set::Behind)
    })
    .more_is_better(),
    metric(
        "distance",
        "distance to targets",
        "s",
        "Σ|q|: sum of what batches differ by, but for the satisfied",
        |run| {
            let distance = |job: &JobOutcome| {
                let (latency, target) = job.batch_latency.zip(job.targets.batch_latency)?;
                let satisfied = set_of(latency, target) == Set::Satisfied;
                Some(if satisfied { 0.0 } else { (latency - target).abs() })
            };
            let distances: Vec<f64> = run.jobs.iter().filter_map(distance).collect();
            (!distances.is_empty()).then(|| distances.iter().sum())
        },
    ),
    metric("utilisation", "utilisation", "%", "CPU time in use over what there was", |run| {
        run.utilisation.map(|used| used * 100.0)
    })
    .more_is_better(),
    metric("stranded", "stranded", "%", "idle while a job was held back by its limit", |run| {
        run.stranded.map(|wasted| wasted * 100.0)
    }),
    metric("moves", "moves", "-", "jobs moved to another node", |run| {
        Some(sum(run, |job| job.moves))
    }),
    metric("preemptions", "preemptions", "-", "workers taken from gangs that run", |run| {
        Some(sum(run, |job| job.preemptions))
    }),
    metric("writes", "limit writes", "-", "limits and weights written", |run| {
        Some(sum(run, |job| job.writes))
    }),
    metric("lost_work", "lost work", "s", "machine-seconds lost to failures", |run| {
        let lost: Vec<f64> = run.jobs.iter().filter_map(|job| job.lost_work).collect();
        (!lost.is_empty()).then(|| lost.iter().sum())
    }),
    metric("unfinished", "unfinished", "jobs", "not over when the run ended", |run| {
        Some(count(run.unfinished()))
    }),
];

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    of: fn(&Outcome) -> Option<f64>,
) -> Metric {
    Metric { name, title, unit, about, better: Better::Less, finished_only: false, of }
}

fn completions(run: &Outcome) -> Vec<f64> {
    run.jobs.iter().filter_map(JobOutcome::completion).collect()
}

fn slowdowns(run: &Outcome) -> Vec<f64> {
    run.jobs.iter().filter_map(JobOutcome::slowdown).collect()
}

fn fairness(run: &Outcome) -> Vec<f64> {
    run.jobs.iter().filter_map(JobOutcome::fairness).collect()
}

fn sum(run: &Outcome, number: fn(&JobOutcome) -> u64) -> f64 {
    counter(run.jobs.iter().map(number).sum())
}

fn times_to(run: &Outcome, target: fn(&JobOutcome) -> Option<f64>) -> Vec<f64> {
    run.jobs.iter().filter_map(|job| Some(target(job)? - job.arrived)).collect()
}

/// How many jobs with a batch target keep it; `None` if no job has one.
fn targets(run: &Outcome, keeps: impl Fn(Set) -> bool) -> Option<f64> {
    let with: Vec<(f64, f64)> = run
        .jobs
        .iter()
        .filter_map(|job| job.batch_latency.zip(job.targets.batch_latency))
        .collect();
    let kept = with.iter().filter(|(latency, target)| keeps(set_of(*latency, *target))).count();
    (!with.is_empty()).then(|| count(kept))
}

#[cfg(test)]
mod tests;
