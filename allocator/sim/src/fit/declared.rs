//! What recordings tell together of a job that says how far it has come.
//!
//! Where its owner declares a job's work, frames have what is left of it (`remaining`), to the step. CPU
//! time does not tell that: the same step takes more of it at one moment than at another. So runs of the
//! job can be laid side by side, and its work is the mean of what it took in each.

use paceline_policy::{Frame, JobId};

use super::course::Course;
use super::learning::Piece;
use super::speed::Speeds;
use super::window::Window;
use super::{Lifetime, ROUNDING, Recording, lifetimes};
use crate::metrics::mean;
use crate::scenario::ReachedAt;

/// At its end a job may be so many times as fast as before: others have gone.
const HURRY: f64 = 3.0;

/// The runs of one job that are known from their first frame to their end.
pub(super) struct Declared<'a> {
    runs: Vec<Run<'a>>,
    /// What is left of the job in its first frame, on average: all parts of its work are parts of this.
    start: f64,
}

struct Run<'a> {
    life: Lifetime,
    recording: &'a Recording,
    windows: &'a [Window<'a>],
    /// What was left in its first frame.
    start: f64,
}

impl Run<'_> {
    /// Whether the job did all of its work: it was not ended before, as at its objective. What was left
    /// when its frames last had news is no more than it could do until it was gone.
    fn is_whole(&self) -> bool {
        let Lifetime { id, arrived, ended: Some(ended), .. } = &self.life else { return false };
        let frames = self.recording.frames().iter();
        let known = frames.filter_map(|frame| Some((frame.t, left_in(frame, id)?)));
        let less = |last: (f64, f64), one: (f64, f64)| if one.1 < last.1 { one } else { last };
        let (t, left) = known.fold((*arrived, self.start), less);
        let pace = (self.start - left) / (t - arrived);
        left <= ROUNDING * self.start || left <= HURRY * pace * (ended - t)
    }
}

impl<'a> Declared<'a> {
    /// Of a job in these recordings, each with its windows; `None` where none has such a run.
    pub(super) fn of(
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

    /// The job's work, as the mean of what it was in each run.
    pub(super) fn work(&self, speeds: &Speeds) -> Option<f64> {
        let each = |run: &Run<'_>| Course::of(&run.life, run.windows, speeds).work;
        mean(&self.runs.iter().map(each).collect::<Vec<_>>()).filter(|work| *work > 0.0)
    }

    /// When it said that it had reached its targets: in the run in the middle, never where it mostly did
    /// not.
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
        // Whoever reaches the objective first is acceptable by then.
        let acceptable = acceptable.map(|part| part.min(objective.unwrap_or(part)));
        ReachedAt { acceptable, objective }
    }

    /// Its losses in each run by the parts of its work, of which a batch is `batch`.
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

/// What is left of a job in the frame of that moment.
fn left(recording: &Recording, id: &JobId, at: f64) -> Option<f64> {
    left_in(recording.frames().iter().find(|frame| frame.t >= at)?, id)
}

fn left_in(frame: &Frame, id: &JobId) -> Option<f64> {
    frame.jobs.iter().find(|job| job.id == *id)?.remaining
}
