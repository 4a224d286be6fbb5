//! The job's scalars in TensorBoard event files. Only the reporter's own thread writes them.

use std::path::Path;

use paceline_tfevents::{Counts, Scalar, Writer};
use paceline_wire::{Forward, Progress, Rank, State, mean_or_recent};

use crate::say::say_as;
use crate::signals::number;

/// The time between two points, as a part of the job's age: an hour has one a second at most, and a
/// long run ever fewer, so that its file stays small.
const SPACING: f64 = 1.0 / 3600.0;
/// The longest time between two points that the job's age asks for, in seconds.
const MAX_SPACING: f64 = 10.0;

/// Writes a job's points.
#[derive(Debug)]
pub(crate) struct Board {
    writer: Writer,
    before: Before,
    /// Why the last point was not written.
    error: Option<String>,
}

/// What all reports before a point came to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Before {
    /// Unix seconds.
    at: f64,
    step: u64,
    losses: u64,
    sum: f64,
    batches: u64,
    batch_seconds: f64,
    validations: u64,
    has_ended: bool,
}

impl Board {
    /// Writes into this folder, or below it for a further rank: TensorBoard shows each as a run.
    /// `progress` is from before the first report.
    pub(crate) fn new(folder: &Path, rank: Option<Rank>, progress: &Progress) -> Self {
        let further = rank.filter(|rank| rank.global > 0);
        let folder = match further {
            Some(rank) => folder.join(format!("rank_{}", rank.global)),
            None => folder.to_owned(),
        };
        let writer = Writer::new(folder, &host());
        Self { writer, before: Before::new(progress), error: None }
    }

    /// Writes a point, unless nothing was reported since the one before or that is too recent.
    /// `smoothed` computes the smoothed loss. With `is_last` no time must have passed.
    pub(crate) fn add(
        &mut self,
        progress: &Progress,
        is_last: bool,
        smoothed: impl FnOnce() -> Option<f64>,
    ) {
        let now = Before::new(progress);
        let outcome = if self.is_due(&now, progress, is_last) {
            let scalars = self.before.scalars(&now, progress, smoothed);
            self.before = now;
            self.writer.write(now.at, now.step, &scalars)
        } else {
            self.writer.flush(now.at)
        };
        let error = outcome.err().map(|error| error.to_string());
        let failed_before = self.error.is_some();
        self.error.clone_from(&error);
        if let (Some(error), false) = (error, failed_before) {
            let folder = self.writer.folder().display();
            say_as(
                &progress.source,
                format_args!(
                    "cannot write TensorBoard files in {folder}: {error}; the job runs on, and each \
                     point is tried again"
                ),
            );
        }
    }

    /// How many points were written, and where to.
    pub(crate) fn describe(&self) -> Forward {
        let Counts { written, dropped, failures } = self.writer.counts();
        let name = self.writer.folder().display().to_string();
        Forward { name, sent: written, failed: failures, dropped, error: self.error.clone() }
    }

    fn is_due(&self, now: &Before, progress: &Progress, is_last: bool) -> bool {
        let before = &self.before;
        let is_news = (now.losses, now.batches, now.validations)
            != (before.losses, before.batches, before.validations);
        let spacing = ((now.at - progress.started_at) * SPACING).min(MAX_SPACING);
        let is_urgent = now.validations != before.validations || now.has_ended != before.has_ended;
        is_news && (is_last || is_urgent || now.at - before.at >= spacing)
    }
}

impl Before {
    fn new(progress: &Progress) -> Self {
        Self {
            at: progress.now,
            step: progress.step.unwrap_or(0),
            losses: progress.eval.count,
            sum: progress.eval.sum,
            batches: progress.batch_latency.count,
            batch_seconds: progress.batch_latency.sum,
            validations: progress.validation.map_or(0, |validation| validation.count),
            has_ended: matches!(progress.state, State::Finished | State::Failed),
        }
    }

    /// What was reported from here until `now`.
    fn scalars(
        &self,
        now: &Self,
        progress: &Progress,
        smoothed: impl FnOnce() -> Option<f64>,
    ) -> Vec<Scalar<'static>> {
        let losses = now.losses.saturating_sub(self.losses);
        let (before, after) = ((self.losses, self.sum), (now.losses, now.sum));
        let loss = mean_or_recent(before, after, progress.eval.value);
        let batches = now.batches.saturating_sub(self.batches);
        let batch_seconds = (now.batch_seconds - self.batch_seconds) / number(batches);
        let steps = number(now.step.saturating_sub(self.step));
        let validation = progress.validation.filter(|_| now.validations > self.validations);
        let epoch = progress.epoch.map(number);
        let all = [
            ("loss/train", loss),
            ("loss/smoothed", if losses > 0 { smoothed() } else { None }),
            ("loss/validation", validation.map(|validation| validation.value)),
            ("time/batch_seconds", (batches > 0).then_some(batch_seconds)),
            ("time/steps_per_second", Some(steps / (now.at - self.at)).filter(|pace| *pace > 0.0)),
            ("progress/epoch", epoch),
        ];
        let known = all.into_iter().filter_map(|(tag, value)| Some(Scalar { tag, value: value? }));
        known.filter(|scalar| scalar.value.is_finite()).collect()
    }
}

/// This machine's name.
#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}

#[cfg(test)]
mod tests;
