//! The startup of jobs: the time between a job's arrival and its first frame.
//!
//! The engine creates a container; its process reads data and builds a model. No job's figures include the
//! CPU that this takes, only the machine's do. So it is the machine's use minus that of the jobs and the
//! background load. It takes longer beside jobs that compete for the machine.

use paceline_policy::unit::count;
use paceline_sim::fit::{Fit, NodeFit, Recording, lifetimes, unseen};
use paceline_sim::scenario::Start;

use super::super::outcome::{JobFacts, Observed, mean};

/// The CPU use of a startup counts as known if frames cover at least this part of it.
const MIN_COVERED: f64 = 0.9;

/// Less work than this, in seconds of the machine, is ignored.
const MIN_WORK: f64 = 0.01;

/// The startup of one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Startup {
    /// Seconds from its arrival until it needs CPU.
    pub(super) wait: f64,
    /// The work that its process then does on one CPU.
    pub(super) start: Option<Start>,
}

/// From one moment to another, in the seconds of a run's frames.
type Span = (f64, f64);

/// The observed startup of one job in one run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    place: usize,
    /// Seconds that it took.
    took: f64,
    /// The share of the machine that one thread could get.
    share: f64,
    /// The CPU that it used, in seconds of the machine.
    used: Option<f64>,
}

/// The startups of `jobs`, in their order, fitted to the runs of `none`.
pub(super) fn startups(
    jobs: &[JobFacts],
    none: &[&Observed<'_>],
    fit: &Fit,
) -> Result<Vec<Startup>, String> {
    let seen: Vec<Seen> = none.iter().filter_map(|run| starts(jobs, run, fit)).flatten().collect();
    let usual = mean_use(&seen);
    let job = |(place, facts): (usize, &JobFacts)| {
        let own: Vec<Seen> = seen.iter().copied().filter(|seen| seen.place == place).collect();
        // The first job's startup is unknown: no frame was recorded before its first one.
        let work = mean_use(&own).or(usual).unwrap_or(0.0);
        // No startup can do more work than fits in its time.
        let most = own.iter().map(|seen| seen.took * seen.share).fold(f64::INFINITY, f64::min);
        let work = Some(work.min(most)).filter(|work| *work >= MIN_WORK);
        let wait = |seen: &Seen| seen.took - work.unwrap_or(0.0) / seen.share;
        let wait = mean(&own.iter().map(wait).collect::<Vec<f64>>());
        let wait = wait.ok_or(format!("no frame contains job {}", facts.job.name))?;
        let cpus = fit.node_of(&facts.job.name).map_or(1.0, |node| node.cpus);
        let start = work.map(|work| Start { work, seconds: work * cpus });
        Ok(Startup { wait, start })
    };
    jobs.iter().enumerate().map(job).collect()
}

fn mean_use(seen: &[Seen]) -> Option<f64> {
    mean(&seen.iter().filter_map(|seen| seen.used).collect::<Vec<f64>>())
}

/// All startups of a run; `None` if it has no frames.
fn starts(jobs: &[JobFacts], run: &Observed<'_>, fit: &Fit) -> Option<Vec<Seen>> {
    let (frames, offset) = (run.frames.as_ref().ok()?, run.offset()?);
    let arrivals: Vec<f64> = run.recorded.run.jobs.iter().map(|job| job.arrived - offset).collect();
    let on = |node: &NodeFit| Some(starts_on(node, jobs, &arrivals, &frames.on(&node.name)?));
    Some(fit.nodes.iter().filter_map(on).flatten().collect())
}

/// The startups on one node. `frames` are that node's, and `arrivals` are in the frames' seconds.
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

/// The share of the `room` for each job that is there during a startup: the kernel shares it equally.
fn share(start: Span, there: &[Span], room: f64) -> f64 {
    room / count(there.iter().filter(|other| overlap(start, **other) > 0.0).count().max(1))
}

/// The CPU that a startup used, if frames cover enough of it. Simultaneous startups share it in proportion to
/// their overlap with a window.
fn used(own: Span, starts: &[Span], frames: &Recording, background: f64) -> Option<f64> {
    let (mut covered, mut used) = (0.0, 0.0);
    for window in unseen(frames) {
        let span = (window.from, window.to);
        let part = overlap(span, own);
        if part > 0.0 {
            covered += part;
            let starting: f64 = starts.iter().map(|other| overlap(span, *other)).sum();
            let work = (window.share - background).max(0.0) * (window.to - window.from);
            used += work * part / starting;
        }
    }
    (covered >= MIN_COVERED * (own.1 - own.0)).then_some(used)
}

/// Seconds for which two spans overlap.
fn overlap(a: Span, b: Span) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}
