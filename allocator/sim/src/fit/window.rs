//! A recording as windows: what each job did between two frames.

use std::collections::BTreeMap;

use paceline_policy::unit::count;
use paceline_policy::{Frame, JobId, Share, frame};

use super::Recording;
use crate::fluid::neighbours;

/// In a shorter window, in seconds, the moment of reading distorts the use.
pub(super) const MIN_SECONDS: f64 = 0.5;
/// A larger value, in any unit, is not a plausible measurement.
const MAX_PLAUSIBLE: f64 = 1e12;
/// Limits that differ by less are equal, since limits are read back rounded.
const LIMIT_ROUNDING: f64 = 0.005;

/// The time between two frames.
#[derive(Clone, Debug)]
pub(super) struct Window<'a> {
    /// When it ends, in the recording's seconds.
    pub(super) end: f64,
    /// How long it is, in seconds.
    pub(super) seconds: f64,
    /// The share of the node that everything there used.
    pub(super) node: Option<f64>,
    /// The share used neither by those jobs nor by the background, for example by a job that
    /// starts.
    pub(super) unattributed: f64,
    /// The jobs that ran from its beginning to its end.
    pub(super) jobs: BTreeMap<&'a JobId, Part>,
}

/// One job in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The share of the node that it used.
    pub(super) share: f64,
    /// Whether that is not measured, but estimated from the use of the node after the job had
    /// ended.
    pub(super) estimated: bool,
    /// Whether it trains. A job that reports at all starts until its first report, and its use
    /// until then says nothing about its training.
    pub(super) trains: bool,
    /// The limit in force at the window's end.
    pub(super) cap: Share,
    /// Whether the limit was the same at the beginning. The mean use is that since the frame
    /// before, but batch durations are those since the last change of the limit.
    pub(super) steady: bool,
    /// The mean of its batches' durations, in seconds.
    pub(super) latency: Option<f64>,
    /// The mean of its losses.
    pub(super) loss: Option<f64>,
    /// The remaining work at the beginning and at the end, where its owner declares it.
    pub(super) left: Option<(f64, f64)>,
}

impl Window<'_> {
    /// The share of the node that all its jobs used.
    pub(super) fn used(&self) -> f64 {
        self.jobs.values().map(|part| part.share).sum()
    }

    /// The weight of the neighbours of each of its jobs.
    pub(super) fn neighbours(&self) -> f64 {
        let squares = self.jobs.values().map(|part| part.share.powi(2)).sum();
        neighbours(self.used(), squares)
    }
}

/// The windows of a recording in which the CPU use of all jobs is known.
pub(super) fn windows(recording: &Recording) -> Vec<Window<'_>> {
    let background = background(recording).unwrap_or(0.0);
    let mut first_reports: BTreeMap<&JobId, f64> = BTreeMap::new();
    for frame in recording.frames() {
        for job in frame.jobs.iter().filter(|job| reports(job)) {
            first_reports.entry(&job.id).or_insert(frame.t);
        }
    }
    let mut shares: BTreeMap<&JobId, f64> = BTreeMap::new();
    let mut windows = Vec::new();
    for pair in pairs(recording) {
        let mut jobs = BTreeMap::new();
        for (id, (before, job)) in &pair.stayed {
            if let Some(share) = cpu(job) {
                shares.insert(id, share);
                let steady = (cap(before).get() - cap(job).get()).abs() < LIMIT_ROUNDING;
                let trains = first_reports.get(*id).is_none_or(|at| *at < pair.after.t);
                let left = before.remaining.zip(job.remaining);
                jobs.insert(*id, Part { trains, steady, left, ..part(job, share) });
            }
        }
        // The use by no remaining job is that of the jobs that ended.
        let left = pair.not_used_by_jobs().map(|left| {
            let each = (left - background).max(0.0) / count(pair.gone.len());
            each.min(1.0)
        });
        for (id, job) in &pair.gone {
            if let Some(share) = left.or_else(|| shares.get(id).copied()) {
                // Its last losses and batches are in no frame.
                let part = Part { estimated: true, latency: None, loss: None, ..part(job, share) };
                jobs.insert(*id, part);
            }
        }
        if jobs.len() == pair.stayed.len() + pair.gone.len() {
            let (end, seconds, node) = (pair.after.t, pair.seconds, pair.node());
            let used: f64 = jobs.values().map(|part| part.share).sum();
            let unattributed = node.map_or(0.0, |node| (node - used - background).max(0.0));
            windows.push(Window { end, seconds, node, unattributed, jobs });
        }
    }
    windows
}

/// The mean share of the node used by anything but the jobs of the recording. Only time in which no
/// job came or went counts, since a container's start is not part of a job's work.
pub(super) fn background(recording: &Recording) -> Option<f64> {
    let (mut used, mut seconds) = (0.0, 0.0);
    for pair in pairs(recording).filter(Pair::is_quiet) {
        if let Some(share) = pair.not_used_by_jobs() {
            used += share.clamp(0.0, 1.0) * pair.seconds;
            seconds += pair.seconds;
        }
    }
    (seconds > 0.0).then(|| used / seconds)
}

/// The use between two frames by anything but the jobs of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unseen {
    /// When the first was, in the recording's seconds.
    pub from: f64,
    /// When the second was.
    pub to: f64,
    /// The mean share of the node.
    pub share: f64,
}

/// The unseen use between all successive frames without an ended job, whose last use is unknown.
pub fn unseen(recording: &Recording) -> Vec<Unseen> {
    let known = pairs(recording).filter(|pair| pair.gone.is_empty());
    let unseen = known.filter_map(|pair| {
        let to = pair.after.t;
        Some(Unseen { from: to - pair.seconds, to, share: pair.not_used_by_jobs()?.max(0.0) })
    });
    unseen.collect()
}

/// Two frames, one after the other, and the jobs of the first.
struct Pair<'a> {
    seconds: f64,
    after: &'a Frame,
    /// The jobs that are in both frames.
    stayed: BTreeMap<&'a JobId, (&'a frame::Job, &'a frame::Job)>,
    /// The jobs that are in the first frame only.
    gone: BTreeMap<&'a JobId, &'a frame::Job>,
}

/// All pairs of successive frames at different times, the first of which has a job.
fn pairs(recording: &Recording) -> impl Iterator<Item = Pair<'_>> {
    let frames = recording.frames();
    frames.iter().zip(frames.iter().skip(1)).filter_map(|(before, after)| {
        let seconds = after.t - before.t;
        let there: BTreeMap<&JobId, &frame::Job> =
            after.jobs.iter().map(|job| (&job.id, job)).collect();
        let (mut stayed, mut gone) = (BTreeMap::new(), BTreeMap::new());
        for job in &before.jobs {
            match there.get(&job.id) {
                Some(later) => {
                    stayed.insert(&job.id, (job, *later));
                }
                None => {
                    gone.insert(&job.id, job);
                }
            }
        }
        let passed = seconds > 0.0 && seconds < MAX_PLAUSIBLE && !before.jobs.is_empty();
        passed.then_some(Pair { seconds, after, stayed, gone })
    })
}

impl Pair<'_> {
    /// Whether no job came or went.
    fn is_quiet(&self) -> bool {
        self.gone.is_empty() && self.stayed.len() == self.after.jobs.len()
    }

    /// The share of the node that everything there used.
    fn node(&self) -> Option<f64> {
        self.after.nodes.first()?.usage.cpu
    }

    /// The share of the node used by none of the jobs in both frames; `None` if some use is
    /// unknown.
    fn not_used_by_jobs(&self) -> Option<f64> {
        let used = self.node()?;
        let jobs: Option<f64> = self.stayed.values().map(|(_, job)| cpu(job)).sum();
        Some(used - jobs?)
    }
}

fn reports(job: &frame::Job) -> bool {
    job.loss.is_some() || job.batch_latency.is_some()
}

fn cpu(job: &frame::Job) -> Option<f64> {
    job.usage.cpu.map(|share| share.clamp(0.0, 1.0))
}

/// The limit in force.
fn cap(job: &frame::Job) -> Share {
    Share::nearest(job.limit.applied.unwrap_or(1.0))
}

fn part(job: &frame::Job, share: f64) -> Part {
    Part {
        share,
        estimated: false,
        trains: true,
        cap: cap(job),
        steady: true,
        latency: job
            .batch_latency
            .filter(|seconds| (1.0 / MAX_PLAUSIBLE..MAX_PLAUSIBLE).contains(seconds)),
        loss: job.loss.filter(|loss| loss.abs() < MAX_PLAUSIBLE),
        left: None,
    }
}
