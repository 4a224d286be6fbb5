//! Calibration: from recorded runs to a scenario that is simulated.
//!
//! The first recording says which jobs there are and when they come; it and all others (the same
//! jobs alone, or under limits) say what batches take. What is fitted is the simulator's own model:
//!
//! - a job's *work* is the CPU time that it took, in seconds of the whole node, less what
//!   neighbours and limits cost it: of a job that says how far it has come, on average over all
//!   recordings (`declared.rs`). Frames have the mean use between them, so nothing is interpolated but the
//!   time after a job's last frame: there it used what the node did and no other job;
//! - the most that it can use (`parallel`) is what it used while there was room for more, from its first
//!   report on: before that it starts;
//! - its weight in a crowd (`crowded`) is told by what it got there beside others;
//! - what a batch takes, what a limit costs and how neighbours slow a job down: `speed.rs`;
//! - how its loss falls: `learning.rs`; of a job that is in too few frames of the first recording, the
//!   others tell that, too. What its reports have beside that in each recording alike: `residuals.rs`;
//! - what the machine itself uses, and no job gets, is the node's `background`.
//!
//! A frame does not say which work was done before the job's endpoint first answered: a fitted job
//! arrives with its first frame, and with the losses that it had reported by then (`told`).

mod against;
mod batch;
mod crowd;
mod declared;
mod learning;
mod lifetime;
mod model;
mod numeric;
mod parallel;
mod recording;
mod residuals;
mod speed;
mod window;
mod write;

use std::collections::BTreeMap;

use paceline_policy::{JobId, frame};
use paceline_wire::Direction;

pub use against::{Accuracy, Figure, JobAccuracy, accuracy};
use declared::Declared;
use learning::{LEAST_FRAMES, Piece, learning};
pub use lifetime::{Lifetime, lifetimes};
pub use model::{Batch, Fit, Fitted, JobFit, Learning, Measured, NodeFit, Terms, Throttling, Why};
pub use recording::{Recording, RecordingError};
use speed::Speeds;
pub use window::{Unseen, unseen};
use window::{Window, background, windows};
pub use write::Heading;

use crate::scenario::{BATCHES, ReachedAt, Told};

/// Works that differ by less, as a part of them, are the same.
const ROUNDING: f64 = 1e-9;

/// Recordings that no scenario can be made of.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// The number of the node's CPUs is in no frame.
    #[error("no frame says how many CPUs the node has (nodes[0].cpus, a number above 0)")]
    NoCpus,
    /// Nothing is known of any job.
    #[error(
        "no job is in two frames with its CPU use (usage.cpu) in the second: record with a shorter \
         interval, or for longer"
    )]
    NoUse,
}

/// Fits a node and the jobs of `first`; `others` tell more about the same jobs.
pub fn fit(first: &Recording, others: &[Recording]) -> Result<Fit, FitError> {
    let node = first.frames().iter().find_map(|frame| frame.nodes.first());
    let cpus = node.and_then(|node| node.cpus).filter(|cpus| *cpus > 0.0 && cpus.is_finite());
    let (node, cpus) = node.zip(cpus).ok_or(FitError::NoCpus)?;
    let own = windows(first);
    let more: Vec<Vec<Window<'_>>> = others.iter().map(windows).collect();
    let all: Vec<Window<'_>> = own.iter().chain(more.iter().flatten()).cloned().collect();
    let background = background(first);
    let room = 1.0 - background.unwrap_or(0.0);
    let parallel = parallel::parallel(&all, room);
    let most = |id: &JobId| parallel.get(id).copied().and_then(Result::ok).map_or(1.0, |m| m.mean);
    let crowded = crowd::weights(&all, cpus, most);
    let speeds = Speeds::of(&all, cpus, most);

    let lives = lifetimes(first);
    let start = lives.first().map_or(0.0, |life| life.arrived);
    let last = last_seen(first);
    let (mut jobs, mut left_out) = (Vec::new(), Vec::new());
    for life in lives {
        let course = Course::of(&life, &own, &speeds);
        let Some(seen) = last.get(&life.id).filter(|_| course.work > 0.0) else {
            left_out.push(life.id);
            continue;
        };
        let recordings = std::iter::once(first).chain(others);
        let windows = std::iter::once(&own).chain(&more).map(Vec::as_slice);
        let declared =
            Declared::of(&life.id, recordings.zip(windows)).filter(|_| life.ended.is_some());
        let work = declared.as_ref().and_then(|its| its.work(&speeds)).unwrap_or(course.work);
        let batch = speeds.batch(&life.id);
        let size = batch.map_or(work / BATCHES, |batch| batch.work);
        let told = told(std::iter::once(first).chain(others), &life.id);
        // The largest was among those, before the curve begins.
        let largest = first_loss(first, &life.id).filter(|_| told.is_none());
        let runs = declared.as_ref().map(|its| its.losses(size / work)).unwrap_or_default();
        let mut pieces = runs.concat();
        if pieces.len() < LEAST_FRAMES {
            let mut losses = course.losses.clone();
            if losses.len() < LEAST_FRAMES {
                losses.extend(others.iter().zip(&more).flat_map(|(recording, windows)| {
                    let its = lifetimes(recording).into_iter().find(|its| its.id == life.id);
                    its.map(|its| Course::of(&its, windows, &speeds).losses).unwrap_or_default()
                }));
            }
            pieces = by_work(&losses, course.work, size);
        }
        let reached_at = declared.as_ref().map(Declared::reached_at);
        jobs.push(JobFit {
            arrived: life.arrived - start,
            start: None,
            ended: life.ended.is_some(),
            work,
            cpu: course.cpu,
            parallel: parallel.get(&life.id).copied().unwrap_or(Err(Why::NoRoom { most: 0.0 })),
            crowded: crowded.get(&life.id).copied().unwrap_or(Err(Why::NoCrowd)),
            contention: speeds.own(&life.id),
            batch,
            learning: learned(pieces, size / work, seen.direction, largest)
                .map(|learning| residuals::beside(learning, &runs)),
            told,
            reached_at: reached_at.unwrap_or_else(|| course.reached_at(&life)),
            terms: terms(seen),
            id: life.id,
        });
    }
    if jobs.is_empty() {
        return Err(FitError::NoUse);
    }
    let node = NodeFit {
        name: if node.name.is_empty() { "node".to_owned() } else { node.name.as_str().to_owned() },
        cpus,
        memory: node.memory.filter(|memory| *memory > 0.0 && memory.is_finite()),
        background: background.ok_or(Why::NoNodeUse),
        contention: speeds.contention,
    };
    Ok(Fit { node, jobs, left_out })
}

/// What a job did in the windows of its recording.
struct Course {
    work: f64,
    cpu: f64,
    /// The work up to the moments at which it said that it had reached its targets.
    acceptable: Option<f64>,
    objective: Option<f64>,
    /// The work before and after each window with a loss, and that loss.
    losses: Vec<(f64, f64, f64)>,
}

impl Course {
    fn of(life: &Lifetime, windows: &[Window<'_>], speeds: &Speeds) -> Self {
        let mut course =
            Self { work: 0.0, cpu: 0.0, acceptable: None, objective: None, losses: Vec::new() };
        for window in windows {
            let Some(part) = window.jobs.get(&life.id) else { continue };
            let before = course.work;
            course.work += window.seconds * speeds.rate(&life.id, part, window.neighbours());
            course.cpu += window.seconds * part.share;
            let begin = window.end - window.seconds;
            let reached = |at: Option<f64>| {
                let at = at.filter(|at| *at <= window.end)?;
                Some(if at > begin { course.work } else { before })
            };
            let (acceptable, objective) = (reached(life.acceptable), reached(life.objective));
            course.acceptable = course.acceptable.or(acceptable);
            course.objective = course.objective.or(objective);
            if let Some(loss) = part.loss.filter(|_| course.work > before) {
                course.losses.push((before, course.work, loss));
            }
        }
        course
    }

    /// A job that ended without having said so of a target never does.
    fn reached_at(&self, life: &Lifetime) -> ReachedAt {
        let never = life.ended.map(|_| f64::INFINITY);
        let part = |work: Option<f64>| work.map(|work| work / self.work).or(never);
        ReachedAt { acceptable: part(self.acceptable), objective: part(self.objective) }
    }
}

/// The losses of windows by the parts of so much work, in batches of such a size; what is beyond it is
/// left out.
fn by_work(losses: &[(f64, f64, f64)], work: f64, batch: f64) -> Vec<Piece> {
    let within = losses.iter().filter(|(_, to, _)| *to <= work * (1.0 + ROUNDING));
    let piece = |&(from, to, loss): &(f64, f64, f64)| Piece {
        from: from / work,
        to: to / work,
        loss,
        batches: (to - from) / batch,
    };
    within.map(piece).collect()
}

/// The curve of a job's loss, whose batches are such a part of its work; `first` is the largest loss
/// that its first frames tell of.
fn learned(
    mut pieces: Vec<Piece>,
    batch: f64,
    direction: Direction,
    first: Option<f64>,
) -> Fitted<Learning> {
    pieces.sort_by(|a, b| a.from.total_cmp(&b.from));
    let falls = direction == Direction::Minimize
        && pieces
            .iter()
            .all(|piece| first.is_some_and(|first| (0.0..=first).contains(&piece.loss)));
    let first = first.filter(|_| falls).map(|loss| Piece {
        from: 0.0,
        to: batch.min(1.0),
        loss,
        batches: 1.0,
    });
    learning(&pieces, first, direction)
}

/// What a job had reported by its first frame: the median of the recordings in which it had, if those
/// are half of them at least.
fn told<'a>(recordings: impl Iterator<Item = &'a Recording>, id: &JobId) -> Option<Told> {
    let of = |job: &frame::Job| {
        let loss = job.loss?;
        Some(Told { loss, largest: job.loss_max?.max(loss.abs()) })
    };
    let first = |recording: &'a Recording| {
        let mut jobs = recording.frames().iter().flat_map(|frame| &frame.jobs);
        jobs.find(|job| job.id == *id)
    };
    let all: Vec<Option<Told>> = recordings.filter_map(first).map(of).collect();
    let mut told: Vec<Told> = all.iter().copied().flatten().collect();
    told.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    told.get(told.len() / 2).copied().filter(|_| 2 * told.len() >= all.len())
}

/// The largest loss, without its sign, as the first frame has it that tells of one.
fn first_loss(recording: &Recording, id: &JobId) -> Option<f64> {
    let jobs = recording.frames().iter().flat_map(|frame| &frame.jobs);
    jobs.filter(|job| job.id == *id).find_map(|job| job.loss_max)
}

/// Each job as its last frame has it.
fn last_seen(recording: &Recording) -> BTreeMap<&JobId, &frame::Job> {
    let jobs = recording.frames().iter().flat_map(|frame| &frame.jobs);
    jobs.map(|job| (&job.id, job)).collect()
}

fn terms(job: &frame::Job) -> Terms {
    Terms {
        targets: job.targets,
        may_terminate: job.may_terminate,
        min: job.limit.min,
        max: job.limit.max,
        weight: job.weight,
        max_slowdown: job.limit.max_slowdown,
    }
}

#[cfg(test)]
mod tests;
