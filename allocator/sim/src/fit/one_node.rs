//! Fits one node and its jobs.

use std::collections::BTreeMap;

use paceline_policy::{JobId, frame};
use paceline_wire::Direction;

use super::declared::DeclaredRuns;
use super::learning::{MIN_FRAMES, Piece, learning};
use super::model::{Fitted, JobFit, Learning, NodeFit, Terms, Why};
use super::speed::Speeds;
use super::trajectory::{Trajectory, by_work};
use super::window::{Window, background, windows};
use super::{FitError, Recording, lifetimes, oversubscribed, parallel, residuals};
use crate::scenario::{DEFAULT_BATCHES, EarlyReports};

/// The fit of one node.
#[derive(Debug)]
pub(super) struct OneNode {
    pub(super) node: NodeFit,
    /// Those of the first recording, in the order of their arrival.
    pub(super) jobs: Vec<JobFit>,
    pub(super) left_out: Vec<JobId>,
}

/// Fits the node and the jobs of `first`, which begins at `begins`, using `others` as further runs
/// of the same jobs.
pub(super) fn fit_node(
    first: &Recording,
    others: &[Recording],
    begins: f64,
) -> Result<OneNode, FitError> {
    let node = first.frames().iter().find_map(|frame| frame.nodes.first());
    let cpus = node.and_then(|node| node.cpus).filter(|cpus| *cpus > 0.0 && cpus.is_finite());
    let (node, cpus) = node.zip(cpus).ok_or(FitError::NoCpus)?;
    let name = if node.name.is_empty() { "node" } else { node.name.as_str() }.to_owned();
    let own = windows(first);
    let more: Vec<Vec<Window<'_>>> = others.iter().map(windows).collect();
    let all: Vec<Window<'_>> = own.iter().chain(more.iter().flatten()).cloned().collect();
    let background = background(first);
    let room = 1.0 - background.unwrap_or(0.0);
    let parallel = parallel::parallel(&all, room);
    let most = |id: &JobId| parallel.get(id).copied().and_then(Result::ok).map_or(1.0, |m| m.mean);
    let crowded = oversubscribed::weights(&all, cpus, most);
    let speeds = Speeds::fit(&all, cpus, most);

    let lives = lifetimes(first);
    let last = last_seen(first);
    let (mut jobs, mut left_out) = (Vec::new(), Vec::new());
    for life in lives {
        let trajectory = Trajectory::new(&life, &own, &speeds);
        let Some(seen) = last.get(&life.id).filter(|_| trajectory.work > 0.0) else {
            left_out.push(life.id);
            continue;
        };
        let recordings = std::iter::once(first).chain(others);
        let windows = std::iter::once(&own).chain(&more).map(Vec::as_slice);
        let declared =
            DeclaredRuns::find(&life.id, recordings.zip(windows)).filter(|_| life.ended.is_some());
        let work = declared.as_ref().and_then(|its| its.work(&speeds)).unwrap_or(trajectory.work);
        let batch = speeds.batch(&life.id);
        let size = batch.map_or(work / DEFAULT_BATCHES, |batch| batch.work);
        let early = early_reports(std::iter::once(first).chain(others), &life.id);
        // The early reports include the largest, and lie before the curve begins.
        let largest = first_loss(first, &life.id).filter(|_| early.is_none());
        let runs = declared.as_ref().map(|its| its.losses(size / work)).unwrap_or_default();
        let mut pieces = runs.concat();
        if pieces.len() < MIN_FRAMES {
            let mut losses = trajectory.losses.clone();
            if losses.len() < MIN_FRAMES {
                losses.extend(others.iter().zip(&more).flat_map(|(recording, windows)| {
                    let its = lifetimes(recording).into_iter().find(|its| its.id == life.id);
                    its.map(|its| Trajectory::new(&its, windows, &speeds).losses)
                        .unwrap_or_default()
                }));
            }
            pieces = by_work(&losses, trajectory.work, size);
        }
        let reached_at = declared.as_ref().map(DeclaredRuns::reached_at);
        jobs.push(JobFit {
            node: name.clone(),
            arrived: life.arrived - begins,
            start: None,
            ended: life.ended.is_some(),
            work,
            cpu: trajectory.cpu,
            parallel: parallel.get(&life.id).copied().unwrap_or(Err(Why::NoRoom { most: 0.0 })),
            crowded: crowded.get(&life.id).copied().unwrap_or(Err(Why::NeverOversubscribed)),
            contention: speeds.own(&life.id),
            batch,
            learning: learned(pieces, size / work, seen.direction, largest)
                .map(|learning| residuals::beside(learning, &runs)),
            early_reports: early,
            move_wait: None,
            reached_at: reached_at.unwrap_or_else(|| trajectory.reached_at(&life)),
            terms: terms(seen),
            id: life.id,
        });
    }
    let node = NodeFit {
        name,
        cpus,
        memory: node.memory.filter(|memory| *memory > 0.0 && memory.is_finite()),
        background: background.ok_or(Why::NoNodeUse),
        contention: speeds.contention,
    };
    Ok(OneNode { node, jobs, left_out })
}

/// The curve of a job's loss, where one batch is the part `batch` of its work. `first` is the
/// largest loss in its first frames.
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

/// What a job had reported by its first frame: the median over the recordings with such reports, if
/// they are at least half.
fn early_reports<'a>(
    recordings: impl Iterator<Item = &'a Recording>,
    id: &JobId,
) -> Option<EarlyReports> {
    let of = |job: &frame::Job| {
        let loss = job.loss?;
        Some(EarlyReports { loss, largest: job.loss_max?.max(loss.abs()) })
    };
    let first = |recording: &'a Recording| {
        let mut jobs = recording.frames().iter().flat_map(|frame| &frame.jobs);
        jobs.find(|job| job.id == *id)
    };
    let all: Vec<Option<EarlyReports>> = recordings.filter_map(first).map(of).collect();
    let mut known: Vec<EarlyReports> = all.iter().copied().flatten().collect();
    known.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    known.get(known.len() / 2).copied().filter(|_| 2 * known.len() >= all.len())
}

/// The absolute value of the largest loss, from the first frame that has one.
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
