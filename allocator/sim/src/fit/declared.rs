//! Fits a job that declares its remaining work, from all recordings together.
//!
//! Where its owner declares a job's work, frames have the remaining work (`remaining`), to the
//! step. CPU time is less exact: the same step takes more of it at one moment than at another. So
//! runs of the job can be compared at equal progress, and its work is the mean over the runs.

use paceline_policy::{Frame, JobId};

use super::learning::Piece;
use super::speed::Speeds;
use super::trajectory::Trajectory;
use super::window::Window;
use super::{Lifetime, ROUNDING, Recording, lifetimes};
use crate::scenario::ReachedAt;
use crate::stats::mean;

/// At its end a job may be so many times as fast as before, since other jobs have ended.
const MAX_SPEED_UP: f64 = 3.0;

/// The recorded runs of one job, each from its first frame to its end.
pub(super) struct DeclaredRuns<'a> {
    runs: Vec<Run<'a>>,
    /// The mean remaining work in the first frame. All parts of the work refer to it.
    start: f64,
}

struct Run<'a> {
    life: Lifetime,
    recording: &'a Recording,
    windows: &'a [Window<'a>],
    /// The remaining work in its first frame.
    start: f64,
}

impl Run<'_> {
    /// Whether the job did all of its work, and was not ended before, for example at its objective.
    /// It did if the remaining work of its last frame was no more than it could do until its end.
    fn is_whole(&self) -> bool {
        let Lifetime { id, arrived, ended: Some(ended), .. } = &self.life else { return false };
        let frames = self.recording.frames().iter();
        let known = frames.filter_map(|frame| Some((frame.t, left_in(frame, id)?)));
        let less = |last: (f64, f64), one: (f64, f64)| if one.1 < last.1 { one } else { last };
        let (t, left) = known.fold((*arrived, self.start), less);
        let pace = (self.start - left) / (t - arrived);
        left <= ROUNDING * self.start || left <= MAX_SPEED_UP * pace * (ended - t)
    }
}

impl<'a> DeclaredRuns<'a> {
    /// Finds the complete runs of a job in these recordings, each with its windows; `None` if there
    /// are none.
    pub(super) fn find(
        id: &JobId,
        recordings: impl Iterator<Item = (&'a Recording, &'a [Window<'a>])>,
    ) -> Option<Self> {
        let run = |(recording, windows)| {
            let life = lifetimes(recording).into_iter().find(|life| life.id == *id)?;
            let start = left(recording, id, life.arrived).filter(|left| *left > 0.0)?;
            let run = Run { life, recording, windows, start };
            run.is_whole().then_some(run)
        };
        let runs: Vec<Run<'a>> = recordings.filter_map(run).collect();
        let start = mean(&runs.iter().map(|run| run.start).collect::<Vec<_>>())
            .filter(|start| start.is_finite())?;
        Some(Self { runs, start })
    }

    /// The job's work: the mean over the runs.
    pub(super) fn work(&self, speeds: &Speeds) -> Option<f64> {
        let each = |run: &Run<'_>| Trajectory::new(&run.life, run.windows, speeds).work;
        mean(&self.runs.iter().map(each).collect::<Vec<_>>()).filter(|work| *work > 0.0)
    }

    /// When it reported its targets: the median over the runs, and never if most runs did not
    /// report them.
    pub(super) fn reached_at(&self) -> ReachedAt {
        let at = |moment: fn(&Lifetime) -> Option<f64>| {
            let part = |run: &Run<'_>| {
                let at = moment(&run.life).map(|at| left(run.recording, &run.life.id, at));
                at.map_or(Some(f64::INFINITY), |left| Some((1.0 - left? / self.start).max(0.0)))
            };
            let mut parts: Vec<f64> = self.runs.iter().filter_map(part).collect();
            parts.sort_by(f64::total_cmp);
            parts.get(parts.len() / 2).copied()
        };
        let (acceptable, objective) = (at(|life| life.acceptable), at(|life| life.objective));
        // A job that has reached its objective is acceptable, too.
        let acceptable = acceptable.map(|part| part.min(objective.unwrap_or(part)));
        ReachedAt { acceptable, objective }
    }

    /// Its losses in each run over its work, where one batch is the part `batch`.
    pub(super) fn losses(&self, batch: f64) -> Vec<Vec<Piece>> {
        let of = |run: &Run<'_>| {
            let piece = |window: &Window<'_>| {
                let part = window.jobs.get(&run.life.id)?;
                let ((from, to), loss) = part.left.zip(part.loss)?;
                let [from, to] = [from, to].map(|left| 1.0 - left / self.start);
                let piece = Piece { from, to, loss, batches: (to - from) / batch };
                (from >= 0.0 && to > from && to <= 1.0 + ROUNDING).then_some(piece)
            };
            run.windows.iter().filter_map(piece).collect()
        };
        self.runs.iter().map(of).collect()
    }
}

/// The remaining work in the first frame at or after `at`.
fn left(recording: &Recording, id: &JobId, at: f64) -> Option<f64> {
    left_in(recording.frames().iter().find(|frame| frame.t >= at)?, id)
}

fn left_in(frame: &Frame, id: &JobId) -> Option<f64> {
    frame.jobs.iter().find(|job| job.id == *id)?.remaining
}
