//! One node and the jobs there, as recordings of it tell of them.

use std::collections::BTreeMap;

use paceline_policy::{JobId, frame};
use paceline_wire::Direction;

use super::course::{Course, by_work};
use super::declared::Declared;
use super::learning::{LEAST_FRAMES, Piece, learning};
use super::model::{Fitted, JobFit, Learning, NodeFit, Terms, Why};
use super::speed::Speeds;
use super::window::{Window, background, windows};
use super::{FitError, Recording, crowd, lifetimes, parallel, residuals};
use crate::scenario::{BATCHES, Told};

/// What was fitted of one node.
#[derive(Debug)]
pub(super) struct OneNode {
    pub(super) node: NodeFit,
    /// Those of the first recording, in the order of their arrival.
    pub(super) jobs: Vec<JobFit>,
    pub(super) left_out: Vec<JobId>,
}

/// Fits the node and the jobs of `first`, which begins at `begins`; `others` tell more about the same
/// jobs.
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
    let crowded = crowd::weights(&all, cpus, most);
    let speeds = Speeds::of(&all, cpus, most);

    let lives = lifetimes(first);
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
            node: name.clone(),
            arrived: life.arrived - begins,
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
            move_wait: None,
            reached_at: reached_at.unwrap_or_else(|| course.reached_at(&life)),
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
