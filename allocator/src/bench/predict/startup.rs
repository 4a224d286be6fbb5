//! How jobs start: what lies between a job's arrival and its first frame.
//!
//! A container is made, and its process reads data and builds a model. What that takes of the machine
//! is in no job's figures, but in the machine's: it is what neither the jobs nor its usual use by
//! others account for. Beside jobs that compete for the machine it takes longer.

use paceline_policy::unit::count;
use paceline_sim::fit::{Fit, Lifetime, Recording, lifetimes, unseen};
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

/// One job's start in one run, in the seconds of its frames.
#[derive(Clone, Copy, Debug)]
struct Seen {
    place: usize,
    from: f64,
    to: f64,
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
    let used = |of: &dyn Fn(&Seen) -> bool| {
        let known = seen.iter().filter(|seen| of(seen)).filter_map(|seen| seen.used);
        mean(&known.collect::<Vec<f64>>())
    };
    // Of the first job of a run nothing is told: no frame is before its own.
    let usual = used(&|_| true);
    let job = |(place, facts): (usize, &JobFacts)| {
        let own: Vec<&Seen> = seen.iter().filter(|seen| seen.place == place).collect();
        let work = used(&|seen| seen.place == place).or(usual).unwrap_or(0.0);
        let took = |seen: &&Seen| seen.to - seen.from;
        let least = own.iter().map(|seen| took(seen) * seen.share).fold(f64::INFINITY, f64::min);
        // None of them did more than there was time for.
        let work = Some(work.min(least)).filter(|work| *work >= LEAST_WORK);
        let busy = |seen: &Seen| work.unwrap_or(0.0) / seen.share;
        let waits: Vec<f64> = own.iter().map(|seen| took(seen) - busy(seen)).collect();
        let wait = mean(&waits).ok_or(format!("no frame has {}", facts.job.name))?;
        let start = work.map(|work| Start { work, seconds: work * fit.node.cpus });
        Ok(Startup { wait, start })
    };
    jobs.iter().enumerate().map(job).collect()
}

/// All starts of a run; `None` if it has no frames.
fn starts(jobs: &[JobFacts], run: &Observed<'_>, fit: &Fit) -> Option<Vec<Seen>> {
    let (frames, offset) = (run.frames.as_ref().ok()?, run.offset()?);
    let lives = lifetimes(frames);
    let start = |(place, facts): (usize, &JobFacts)| {
        let name = facts.job.name.as_str();
        let to = lives.iter().find(|life| life.id.as_str() == name)?.arrived;
        let from = run.recorded.run.jobs.get(place)?.arrived - offset;
        Some(Seen { place, from, to, share: 0.0, used: None })
    };
    let all: Vec<Seen> = jobs.iter().enumerate().filter_map(start).collect();
    let complete = |seen: &Seen| Seen {
        share: share(seen, &all, &lives, fit),
        used: used(seen, &all, frames, fit.node.background.unwrap_or(0.0)),
        ..*seen
    };
    Some(all.iter().map(complete).collect())
}

/// What one thread gets beside the jobs that run and those that start with it: the kernel shares
/// alike.
fn share(seen: &Seen, all: &[Seen], lives: &[Lifetime], fit: &Fit) -> f64 {
    let runs = |life: &&Lifetime| {
        life.arrived < seen.to && life.ended.is_none_or(|ended| ended > seen.from)
    };
    let beside = lives.iter().filter(runs).count();
    let starting = all.iter().filter(|other| overlap((other.from, other.to), seen) > 0.0).count();
    let room = 1.0 - fit.node.background.unwrap_or(0.0);
    (room / count(beside + starting)).min(1.0 / fit.node.cpus)
}

/// What a start used, where frames tell: those who start at one time share it by how long they do.
fn used(seen: &Seen, all: &[Seen], frames: &Recording, background: f64) -> Option<f64> {
    let (mut told, mut used) = (0.0, 0.0);
    for window in unseen(frames) {
        let span = (window.from, window.to);
        let own = overlap(span, seen);
        let starting: f64 = all.iter().map(|other| overlap(span, other)).sum();
        if own > 0.0 {
            told += own;
            let work = (window.share - background).max(0.0) * (window.to - window.from);
            used += work * own / starting;
        }
    }
    (told >= TOLD * (seen.to - seen.from)).then_some(used)
}

/// For how long a start was under way in a span of time.
fn overlap((from, to): (f64, f64), seen: &Seen) -> f64 {
    (to.min(seen.to) - from.max(seen.from)).max(0.0)
}
