//! A measured run in the form of the simulator's outcome, so that each figure has a single definition.

use std::collections::BTreeMap;

use paceline_api::samples::{Sample, SampleJob};
use paceline_policy::unit::count;
use paceline_sim::Outcome;
use paceline_sim::fit::{Lifetime, lifetimes};
use paceline_sim::outcome::JobOutcome;
use paceline_sim::satisfaction::{Satisfaction, Standing};

use super::super::record::{JobRun, Recorded};
use super::JobFacts;
use super::observed::Observed;
use super::overhead::Overhead;
use super::reference_times::ReferenceTimes;

/// The outcome of a run, measured or simulated. All times are seconds after the run began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trajectory {
    pub(crate) outcome: Outcome,
    /// How its jobs met their batch latency targets; `None` if no job has one.
    pub(crate) satisfaction: Option<Satisfaction>,
    /// The jobs that were stopped because their time was up, and when. They have no end of their own.
    pub(super) stopped: BTreeMap<String, f64>,
    /// The cost of control; only of a measured run with an audit log.
    pub(super) overhead: Option<Overhead>,
}

impl Trajectory {
    /// Of a simulated run.
    pub(crate) fn simulated(
        outcome: Outcome,
        satisfaction: Option<Satisfaction>,
        stopped: BTreeMap<String, f64>,
    ) -> Self {
        Self { outcome, satisfaction, stopped, overhead: None }
    }

    /// Of a measured run of `jobs`.
    pub(crate) fn measured(
        jobs: &[JobFacts],
        observed: &Observed<'_>,
        reference: &ReferenceTimes,
    ) -> Self {
        let Recorded { run, samples, .. } = observed.recorded;
        let offset = observed.offset();
        let frames = observed.frames.as_ref().ok().zip(offset);
        let lives: BTreeMap<String, Lifetime> = frames
            .iter()
            .flat_map(|(frames, _)| lifetimes(frames))
            .map(|life| (life.id.to_string(), life))
            .collect();
        let satisfaction = frames.and_then(|(frames, offset)| {
            Some(shifted(Satisfaction::from_recording(frames)?, offset))
        });
        let overhead = Overhead::from_run(observed);
        let succeeded = |its: &JobRun| observed.failure(its).is_none();
        let stopped = run.jobs.iter().filter(|its| succeeded(its) && reference.is_stopped(its));
        let stopped: BTreeMap<String, f64> =
            stopped.map(|its| (its.job.clone(), its.ended)).collect();
        let job = |(place, (facts, its)): (usize, (&JobFacts, &JobRun))| {
            let name = its.job.as_str();
            let sampled = JobSamples::from_run(facts, observed);
            let life = lives.get(name);
            let reported = |of: fn(&SampleJob) -> Option<f64>| {
                let at = samples_of(name, observed.recorded).find_map(|(_, its)| of(its))?;
                Some(at - run.began)
            };
            let moment = |of: fn(&Lifetime) -> Option<f64>| Some(of(life?)? + offset?);
            let latency = satisfaction.as_ref().and_then(|found| {
                found.latencies.iter().find(|(id, _)| id.as_str() == name).map(|(_, took)| *took)
            });
            let moves =
                run.moves.iter().filter(|moved| moved.job == name && moved.failed.is_none());
            let mut outcome = JobOutcome {
                id: name.to_owned(),
                arrived: its.arrived,
                finished: (succeeded(its) && !stopped.contains_key(name)).then_some(its.ended),
                acceptable: reported(|its| its.acceptable_at)
                    .or_else(|| moment(|life| life.acceptable))
                    .or(sampled.acceptable),
                objective: reported(|its| its.objective_at)
                    .or_else(|| moment(|life| life.objective))
                    .or(sampled.objective),
                loss_area: sampled.loss_area(its, reference.loss_range.get(place)),
                alone: reference.isolated.get(place).copied().flatten(),
                equal: reference.equal_share_of(run.repeat, place),
                moves: moves.map(|_| 1).sum(),
                batch_latency: latency,
                ..JobOutcome::default()
            };
            outcome.targets = sampled.targets;
            outcome.targets.batch_latency = frames.and_then(|(frames, _)| {
                let jobs = frames.frames().iter().flat_map(|frame| &frame.jobs);
                jobs.rev().find(|job| job.id.as_str() == name)?.targets.batch_latency
            });
            outcome
        };
        let jobs = jobs.iter().zip(&run.jobs).enumerate().map(job).collect();
        let until = run.jobs.iter().map(|job| job.ended).fold(0.0, f64::max);
        let (utilisation, stranded) = use_of(samples, run.began, until);
        let outcome = Outcome { jobs, until, utilisation, stranded, ..Outcome::default() };
        Self { outcome, satisfaction, stopped, overhead }
    }

    /// How many jobs failed.
    pub(super) fn failed(&self) -> f64 {
        count(self.outcome.unfinished().saturating_sub(self.stopped.len()))
    }

    /// Each job's arrival and end; `None` if a job failed.
    pub(super) fn spans(&self) -> Option<Vec<(f64, f64)>> {
        let end = |job: &JobOutcome| job.finished.or(self.stopped.get(&job.id).copied());
        self.outcome.jobs.iter().map(|job| Some((job.arrived, end(job)?))).collect()
    }
}

/// The same, with all times shifted by `offset` seconds.
pub(crate) fn shifted(found: Satisfaction, offset: f64) -> Satisfaction {
    let shift = |standing: Standing| Standing { at: standing.at + offset, ..standing };
    Satisfaction { over_time: found.over_time.into_iter().map(shift).collect(), ..found }
}

/// The job's part of each sample, with its time in seconds after the run began.
pub(crate) fn samples_of<'a>(
    job: &'a str,
    recorded: &'a Recorded,
) -> impl Iterator<Item = (f64, &'a SampleJob)> {
    recorded.samples.iter().flat_map(move |sample| {
        let its = sample.jobs.iter().filter(move |its| its.id == job);
        its.map(move |its| (sample.unix - recorded.run.began, its))
    })
}

/// What the samples of one job show.
struct JobSamples {
    /// Times and losses.
    losses: Vec<(f64, f64)>,
    acceptable: Option<f64>,
    objective: Option<f64>,
    targets: paceline_wire::Targets,
}

impl JobSamples {
    fn from_run(facts: &JobFacts, observed: &Observed<'_>) -> Self {
        let upwards = facts.upwards();
        let reaches =
            |loss: f64, target: f64| if upwards { loss >= target } else { loss <= target };
        let samples = || samples_of(&facts.job.name, observed.recorded);
        let first = |target: fn(&SampleJob) -> Option<f64>| {
            let reached = |its: &SampleJob| Some(reaches(its.loss?, target(its)?));
            samples().find(|(_, its)| reached(its) == Some(true)).map(|(t, _)| t)
        };
        let last = samples().last().map(|(_, its)| its);
        Self {
            losses: samples().filter_map(|(t, its)| Some((t, its.loss?))).collect(),
            acceptable: first(|its| its.target_acceptable),
            objective: first(|its| its.target_objective),
            targets: paceline_wire::Targets {
                acceptable: last.and_then(|its| its.target_acceptable),
                objective: last.and_then(|its| its.target_objective),
                ..paceline_wire::Targets::default()
            },
        }
    }

    /// The area under the loss: seconds from arrival to end, weighted by the remaining part of the
    /// loss's fall. `fall` is the loss at the beginning and at the end. A sample's loss is the mean since the
    /// one before. Returns 0 if the job has no loss in any run, and NaN if only this run lacks it.
    fn loss_area(&self, its: &JobRun, fall: Option<&Option<(f64, f64)>>) -> f64 {
        let Some((start, end)) = fall.copied().flatten() else { return 0.0 };
        if self.losses.is_empty() {
            return f64::NAN;
        }
        let (mut area, mut last, mut part) = (0.0, its.arrived, 1.0);
        for (t, loss) in &self.losses {
            let t = t.clamp(last, its.ended.max(last));
            part = (loss - end) / (start - end);
            area += (t - last) * part;
            last = t;
        }
        area + (its.ended - last).max(0.0) * part
    }
}

/// The machine's utilisation by jobs until `until`, and the part that stayed idle while a job was at its
/// limit. Both are fractions of the machine. Times with unknown CPU use are left out, for example while a
/// job continues in another container.
fn use_of(samples: &[Sample], began: f64, until: f64) -> (Option<f64>, Option<f64>) {
    let (mut used, mut idle) = (Vec::new(), Vec::new());
    for pair in samples.windows(2) {
        let [before, sample] = pair else { continue };
        let (from, to) = (before.unix - began, sample.unix - began);
        if to <= 0.0 || from >= until {
            continue;
        }
        let jobs: Option<f64> =
            sample.jobs.iter().map(|its| its.cpu.or(newcomer(its, before))).sum();
        used.extend(jobs.map(|jobs| (to - from, jobs)));
        let at_limit = sample.jobs.iter().filter_map(|its| its.throttled).fold(0.0, f64::max);
        let free = sample.node.cpu.map(|cpu| (1.0 - cpu).max(0.0) * at_limit);
        idle.extend(free.map(|free| (to - from, free)));
    }
    (over_time(&used), over_time(&idle))
}

/// The mean of values, each weighted by its seconds.
fn over_time(parts: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = parts.iter().map(|(length, _)| length).sum();
    (seconds > 0.0).then(|| parts.iter().map(|(length, part)| length * part).sum::<f64>() / seconds)
}

/// A job that was not in the previous sample counts as 0: its first second is too short to measure.
fn newcomer(its: &SampleJob, before: &Sample) -> Option<f64> {
    before.jobs.iter().all(|other| other.id != its.id).then_some(0.0)
}

/// The mean of some numbers.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}
