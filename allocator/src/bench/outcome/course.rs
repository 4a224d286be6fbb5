//! A run as the simulator's outcome: then every figure has one definition, measured or simulated.

use std::collections::BTreeMap;

use paceline_policy::unit::count;
use paceline_sim::Outcome;
use paceline_sim::fit::{Lifetime, lifetimes};
use paceline_sim::outcome::JobOutcome;
use paceline_sim::satisfaction::{Satisfaction, Standing};

use super::super::record::{JobRun, Recorded};
use super::JobFacts;
use super::ground::Ground;
use super::observed::Observed;
use super::upkeep::Upkeep;
use crate::samples::{Sample, SampleJob};

/// What a run came to. All moments are seconds after it began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    pub(crate) outcome: Outcome,
    /// How its jobs stood to the targets of their batches; `None` if none has one.
    pub(crate) satisfaction: Option<Satisfaction>,
    /// The jobs that were stopped since their time was up, and when: they have no end of their own.
    pub(super) stopped: BTreeMap<String, f64>,
    /// What control did; of a measured run, and where it kept a log.
    pub(super) upkeep: Option<Upkeep>,
}

impl Course {
    /// Of a simulated run.
    pub(crate) fn simulated(
        outcome: Outcome,
        satisfaction: Option<Satisfaction>,
        stopped: BTreeMap<String, f64>,
    ) -> Self {
        Self { outcome, satisfaction, stopped, upkeep: None }
    }

    /// Of a measured run of `jobs`.
    pub(crate) fn measured(jobs: &[JobFacts], observed: &Observed<'_>, ground: &Ground) -> Self {
        let Recorded { run, samples, .. } = observed.recorded;
        let offset = observed.offset();
        let frames = observed.frames.as_ref().ok().zip(offset);
        let lives: BTreeMap<String, Lifetime> = frames
            .iter()
            .flat_map(|(frames, _)| lifetimes(frames))
            .map(|life| (life.id.to_string(), life))
            .collect();
        let satisfaction =
            frames.and_then(|(frames, offset)| Some(moved(Satisfaction::of(frames)?, offset)));
        let upkeep = Upkeep::of(observed);
        let succeeded = |its: &JobRun| observed.failure(its).is_none();
        let stopped = run.jobs.iter().filter(|its| succeeded(its) && ground.is_stopped(its));
        let stopped: BTreeMap<String, f64> =
            stopped.map(|its| (its.job.clone(), its.ended)).collect();
        let job = |(place, (facts, its)): (usize, (&JobFacts, &JobRun))| {
            let name = its.job.as_str();
            let said = Said::of(facts, observed);
            let life = lives.get(name);
            let own_word = |of: fn(&SampleJob) -> Option<f64>| {
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
                acceptable: own_word(|its| its.acceptable_at)
                    .or_else(|| moment(|life| life.acceptable))
                    .or(said.acceptable),
                objective: own_word(|its| its.objective_at)
                    .or_else(|| moment(|life| life.objective))
                    .or(said.objective),
                loss_area: said.loss_area(its, ground.falls.get(place)),
                alone: ground.alone.get(place).copied().flatten(),
                equal: ground.equal_of(run.repeat, place),
                moves: moves.map(|_| 1).sum(),
                batch_latency: latency,
                ..JobOutcome::default()
            };
            outcome.targets = said.targets;
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
        Self { outcome, satisfaction, stopped, upkeep }
    }

    /// How many jobs did not succeed.
    pub(super) fn failed(&self) -> f64 {
        count(self.outcome.unfinished().saturating_sub(self.stopped.len()))
    }

    /// From when to when each job was there; `None` if some failed.
    pub(super) fn spans(&self) -> Option<Vec<(f64, f64)>> {
        let end = |job: &JobOutcome| job.finished.or(self.stopped.get(&job.id).copied());
        self.outcome.jobs.iter().map(|job| Some((job.arrived, end(job)?))).collect()
    }
}

/// The same at the times of another clock.
pub(crate) fn moved(found: Satisfaction, offset: f64) -> Satisfaction {
    let shift = |standing: Standing| Standing { at: standing.at + offset, ..standing };
    Satisfaction { over_time: found.over_time.into_iter().map(shift).collect(), ..found }
}

/// The job's part of each sample, with seconds after the run began.
pub(crate) fn samples_of<'a>(
    job: &'a str,
    recorded: &'a Recorded,
) -> impl Iterator<Item = (f64, &'a SampleJob)> {
    recorded.samples.iter().flat_map(move |sample| {
        let its = sample.jobs.iter().filter(move |its| its.id == job);
        its.map(move |its| (sample.unix - recorded.run.began, its))
    })
}

/// What the samples of one job tell.
struct Said {
    /// Moments and losses.
    losses: Vec<(f64, f64)>,
    acceptable: Option<f64>,
    objective: Option<f64>,
    targets: paceline_wire::Targets,
}

impl Said {
    fn of(facts: &JobFacts, observed: &Observed<'_>) -> Self {
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

    /// Seconds from arrival to end, weighted by the part of the loss's fall that was still to come:
    /// `fall` is from what to what. A sample's loss is the mean since the one before. 0 of a job that
    /// has no loss at all, as in the simulator; not a number where this run alone tells of none.
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

/// What the jobs used of the machine until `until`, and what nobody used while some job stood at its
/// limit, both as a part of what there was. Times of which some use is not known, as when a job goes
/// on in another container, count for nothing.
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

/// The mean of parts, each of which stood for so many seconds.
fn over_time(parts: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = parts.iter().map(|(length, _)| length).sum();
    (seconds > 0.0).then(|| parts.iter().map(|(length, part)| length * part).sum::<f64>() / seconds)
}

/// A job that was not there before has no use yet: its first second is too short to tell.
fn newcomer(its: &SampleJob, before: &Sample) -> Option<f64> {
    before.jobs.iter().all(|other| other.id != its.id).then_some(0.0)
}

/// The mean of some numbers.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}
