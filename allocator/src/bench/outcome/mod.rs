//! From what was observed to the figures: no clock, no engine, no files.
//!
//! All times of a result are seconds; those of a job count from its arrival unless said otherwise.

mod together;

use std::collections::BTreeMap;

use serde::Serialize;
pub(crate) use together::{Together, together};

use super::containers::LimitLeft;
use super::machine::Machine;
use super::record::Recorded;
use super::results::Bench;
use super::schedule::{Job, Schedule};
use super::stamp;
use crate::samples::SampleJob;

/// The policy that the others are compared with: what happens without an allocator.
pub(crate) const BASELINE: &str = "none";

/// All that a bench found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Findings {
    /// The schedule's name.
    pub(crate) name: String,
    /// The schedule's description.
    pub(crate) description: String,
    /// Names this run: its containers were labelled with it.
    pub(crate) run: String,
    /// When it began, in UTC.
    pub(crate) date: String,
    pub(crate) machine: Machine,
    pub(crate) jobs: Vec<JobFacts>,
    /// One for each policy, in the order of the runs.
    pub(crate) arms: Vec<ArmOutcome>,
    /// How well the jobs share the machine under `none`; needs `none` and two jobs with a rate.
    pub(crate) together: Option<Together>,
}

/// A job of the schedule and what the calibration made of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct JobFacts {
    #[serde(flatten)]
    pub(crate) job: Job,
    /// Steps per second with the machine for itself.
    pub(crate) solo_rate: Option<f64>,
    /// The steps that it did in each arm.
    pub(crate) steps: Option<u64>,
}

impl JobFacts {
    /// The job's facts, given its rate with the machine for itself.
    pub(crate) fn new(job: &Job, solo_rate: Option<f64>) -> Self {
        let steps = job.work.zip(solo_rate).map(|(work, rate)| whole_steps(work * rate));
        Self { job: job.clone(), solo_rate, steps }
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

/// What one policy did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ArmOutcome {
    pub(crate) policy: String,
    pub(crate) params: BTreeMap<String, f64>,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobOutcome>,
    /// The mean of the completion times; only if every job succeeded.
    pub(crate) mean: Option<Figure>,
    /// From the first arrival to the last end; only if every job succeeded.
    pub(crate) makespan: Option<Figure>,
    /// The share of the machine that was used by anything but the jobs while any ran.
    pub(crate) others: Option<f64>,
    /// Containers that the allocator left with a limit: there should be none.
    pub(crate) limits_left: Vec<LimitLeft>,
}

/// What one job did under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct JobOutcome {
    pub(crate) job: String,
    /// When it ended, in seconds after the run began.
    pub(crate) ended: f64,
    /// From its arrival to its end; only if it succeeded.
    pub(crate) completion: Option<Figure>,
    /// From its arrival to the first second in which its mean loss was acceptable.
    pub(crate) acceptable: Option<Figure>,
    /// Whether the job has told which loss is acceptable.
    pub(crate) has_acceptable: bool,
    pub(crate) exit_code: i64,
    pub(crate) out_of_memory: bool,
}

/// Seconds, and how they compare with `none`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) seconds: f64,
    /// In percent of what it is under `none`; below 0 is sooner.
    pub(crate) change: Option<f64>,
}

impl Figure {
    fn of(seconds: f64) -> Self {
        Self { seconds, change: None }
    }
}

impl JobOutcome {
    /// Why the job did not succeed, if it did not.
    pub(crate) fn failure(&self) -> Option<String> {
        match (self.exit_code, self.out_of_memory) {
            (_, true) => Some("failed: out of memory".to_owned()),
            (0, false) => None,
            (code, false) => Some(format!("failed: exit {code}")),
        }
    }
}

impl ArmOutcome {
    /// Judges the `record` of `jobs` under `policy`.
    pub(crate) fn judge(
        policy: &str,
        params: BTreeMap<String, f64>,
        jobs: &[Job],
        record: &Recorded,
    ) -> Self {
        let outcomes: Vec<JobOutcome> = jobs
            .iter()
            .zip(&record.run.jobs)
            .map(|(job, its)| {
                let mut outcome = JobOutcome {
                    job: job.name.clone(),
                    ended: its.ended,
                    completion: None,
                    acceptable: acceptable(job, record),
                    has_acceptable: samples_of(job, record)
                        .any(|(_, its)| its.target_acceptable.is_some()),
                    exit_code: its.exit_code,
                    out_of_memory: its.out_of_memory,
                };
                if outcome.failure().is_none() {
                    outcome.completion = Some(Figure::of(its.ended - job.arrive));
                }
                outcome
            })
            .collect();
        let completions: Option<Vec<f64>> =
            outcomes.iter().map(|job| job.completion.map(|figure| figure.seconds)).collect();
        let first = jobs.iter().map(|job| job.arrive).fold(f64::INFINITY, f64::min);
        let last = outcomes.iter().map(|job| job.ended).fold(0.0, f64::max);
        Self {
            policy: policy.to_owned(),
            params,
            jobs: outcomes,
            mean: completions.as_deref().and_then(mean).map(Figure::of),
            makespan: completions.map(|_| Figure::of(last - first)),
            others: record.run.host.others,
            limits_left: record.run.limits_left.clone(),
        }
    }

    fn compare(&mut self, with: &Self) {
        compare(&mut self.mean, with.mean);
        compare(&mut self.makespan, with.makespan);
        for (job, other) in self.jobs.iter_mut().zip(&with.jobs) {
            compare(&mut job.completion, other.completion);
            compare(&mut job.acceptable, other.acceptable);
        }
    }
}

/// What `bench` found out about `schedule`, by the first run of each arm.
pub(crate) fn judge(
    schedule: &Schedule,
    facts: &[JobFacts],
    runs: &[Recorded],
    bench: &Bench,
) -> Findings {
    let jobs = &schedule.jobs;
    let of = |arm: &str| runs.iter().find(|of| of.run.arm == arm && of.run.repeat > 0);
    let shown = schedule.arms.iter().filter_map(|arm| Some((arm, of(&arm.name)?)));
    let mut arms: Vec<ArmOutcome> = shown
        .map(|(arm, record)| ArmOutcome::judge(&arm.name, arm.params.clone(), jobs, record))
        .collect();
    compare_all(&mut arms);
    let rates: Vec<Option<f64>> = facts.iter().map(|facts| facts.solo_rate).collect();
    Findings {
        name: schedule.name.clone(),
        description: schedule.description.clone(),
        run: bench.run.clone(),
        date: stamp::date(bench.began),
        machine: bench.machine.clone(),
        jobs: facts.to_vec(),
        arms,
        together: of(BASELINE).and_then(|record| together(jobs, &rates, record)),
    }
}

/// Fills in the changes against `none`, if that is among `arms`.
pub(crate) fn compare_all(arms: &mut [ArmOutcome]) {
    let Some(baseline) = arms.iter().find(|arm| arm.policy == BASELINE).cloned() else { return };
    for arm in arms.iter_mut().filter(|arm| arm.policy != BASELINE) {
        arm.compare(&baseline);
    }
}

fn compare(figure: &mut Option<Figure>, with: Option<Figure>) {
    if let (Some(figure), Some(with)) = (figure, with)
        && with.seconds > 0.0
    {
        figure.change = Some(100.0 * (figure.seconds / with.seconds - 1.0));
    }
}

/// The job's part of each sample, with seconds after the run began.
pub(crate) fn samples_of<'a>(
    job: &'a Job,
    record: &'a Recorded,
) -> impl Iterator<Item = (f64, &'a SampleJob)> {
    record.samples.iter().flat_map(move |sample| {
        let its = sample.jobs.iter().filter(|its| its.id == job.name);
        its.map(move |its| (sample.unix - record.run.began, its))
    })
}

fn acceptable(job: &Job, record: &Recorded) -> Option<Figure> {
    let larger_is_better =
        job.labels.get("paceline.direction").is_some_and(|direction| direction == "maximize");
    samples_of(job, record)
        .find(|(_, its)| match (its.loss, its.target_acceptable) {
            (Some(loss), Some(target)) if larger_is_better => loss >= target,
            (Some(loss), Some(target)) => loss <= target,
            _ => false,
        })
        .map(|(t, _)| Figure::of(t - job.arrive))
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = f64::from(u32::try_from(values.len()).ok()?);
    (count > 0.0).then(|| values.iter().sum::<f64>() / count)
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod tests;
