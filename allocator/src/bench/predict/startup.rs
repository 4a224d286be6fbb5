//! How jobs start: what lies between a job's arrival and its first frame.
//!
//! A container is made, and its process reads data and builds a model. What that takes of the machine
//! is in no job's figures, but in the machine's: it is what neither the jobs nor its usual use by
//! others account for. Beside jobs that compete for the machine it takes longer.

use paceline_policy::unit::count;
use paceline_sim::fit::{Fit, NodeFit, Recording, lifetimes, unseen};
use paceline_sim::scenario::Start;

use super::super::outcome::{JobFacts, Observed, mean};

/// What a start used is known where frames tell of this part of it.
const TOLD: f64 = 0.9;

/// Less work than this, in seconds of the machine, is of no account.
const LEAST_WORK: f64 = 0.01;

/// One job's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Startup {
    /// Seconds from its arrival until it asks for the machine.
    pub(super) wait: f64,
    /// What its process then does on one CPU.
    pub(super) start: Option<Start>,
}

/// From one moment to another, in the seconds of a run's frames.
type Span = (f64, f64);

/// One job's start in one run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    place: usize,
    /// Seconds that it took.
    took: f64,
    /// What there was for one thread, as a share of the machine.
    share: f64,
    /// What it used, in seconds of the machine.
    used: Option<f64>,
}

/// The starts of `jobs`, in their order, as the runs of `none` tell of them.
pub(super) fn startups(
    jobs: &[JobFacts],
    none: &[&Observed<'_>],
    fit: &Fit,
) -> Result<Vec<Startup>, String> {
    let seen: Vec<Seen> = none.iter().filter_map(|run| starts(jobs, run, fit)).flatten().collect();
    let usual = mean_use(&seen);
    let job = |(place, facts): (usize, &JobFacts)| {
        let own: Vec<Seen> = seen.iter().copied().filter(|seen| seen.place == place).collect();
        // Of the first job of a run nothing is told: no frame is before its own.
        let work = mean_use(&own).or(usual).unwrap_or(0.0);
        // None of them did more than there was time for.
        let most = own.iter().map(|seen| seen.took * seen.share).fold(f64::INFINITY, f64::min);
        let work = Some(work.min(most)).filter(|work| *work >= LEAST_WORK);
        let wait = |seen: &Seen| seen.took - work.unwrap_or(0.0) / seen.share;
        let wait = mean(&own.iter().map(wait).collect::<Vec<f64>>());
        let wait = wait.ok_or(format!("no frame has {}", facts.job.name))?;
        let cpus = fit.node_of(&facts.job.name).map_or(1.0, |node| node.cpus);
        let start = work.map(|work| Start { work, seconds: work * cpus });
        Ok(Startup { wait, start })
    };
    jobs.iter().enumerate().map(job).collect()
}

fn mean_use(seen: &[Seen]) -> Option<f64> {
    mean(&seen.iter().filter_map(|seen| seen.used).collect::<Vec<f64>>())
}

/// All starts of a run; `None` if it has no frames.
fn starts(jobs: &[JobFacts], run: &Observed<'_>, fit: &Fit) -> Option<Vec<Seen>> {
    let (frames, offset) = (run.frames.as_ref().ok()?, run.offset()?);
    let arrivals: Vec<f64> = run.recorded.run.jobs.iter().map(|job| job.arrived - offset).collect();
    let on = |node: &NodeFit| Some(starts_on(node, jobs, &arrivals, &frames.on(&node.name)?));
    Some(fit.nodes.iter().filter_map(on).flatten().collect())
}

/// Those on one node, of which these are the frames; `arrivals` are in their seconds.
fn starts_on(node: &NodeFit, jobs: &[JobFacts], arrivals: &[f64], frames: &Recording) -> Vec<Seen> {
    let lives = lifetimes(frames);
    let known = |(place, facts): (usize, &JobFacts)| {
        let life = lives.iter().find(|life| life.id.as_str() == facts.job.name)?;
        let arrived = *arrivals.get(place)?;
        let ended = life.ended.unwrap_or(f64::INFINITY);
        Some((place, (arrived, life.arrived), (arrived, ended)))
    };
    let of: Vec<(usize, Span, Span)> = jobs.iter().enumerate().filter_map(known).collect();
    let (starts, there): (Vec<Span>, Vec<Span>) =
        of.iter().map(|(_, start, there)| (*start, *there)).unzip();
    let background = node.background.unwrap_or(0.0);
    let seen = |(place, start, _): (usize, Span, Span)| Seen {
        place,
        took: start.1 - start.0,
        share: share(start, &there, 1.0 - background).min(1.0 / node.cpus),
        used: used(start, &starts, frames, background),
    };
    of.into_iter().map(seen).collect()
}

/// The share of the `room` for everyone who is there during a start: the kernel shares alike.
fn share(start: Span, there: &[Span], room: f64) -> f64 {
    room / count(there.iter().filter(|other| overlap(start, **other) > 0.0).count().max(1))
}

/// What a start used, where frames tell: those who start at one time share it by how long they do.
fn used(own: Span, starts: &[Span], frames: &Recording, background: f64) -> Option<f64> {
    let (mut told, mut used) = (0.0, 0.0);
    for window in unseen(frames) {
        let span = (window.from, window.to);
        let part = overlap(span, own);
        if part > 0.0 {
            told += part;
            let starting: f64 = starts.iter().map(|other| overlap(span, *other)).sum();
            let work = (window.share - background).max(0.0) * (window.to - window.from);
            used += work * part / starting;
        }
    }
    (told >= TOLD * (own.1 - own.0)).then_some(used)
}

/// For how long two spans go on at once.
fn overlap(a: Span, b: Span) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}
