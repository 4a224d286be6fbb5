//! Signals derived from the reports so far: the pace of a job, the trend of its loss, and when it
//! will reach its targets.
//!
//! They are computed on request, from a bounded [`History`] and the current [`Progress`]; nothing
//! here reads a clock. For any losses and times, each result is a finite number or `None`.

mod activity;
mod bucket;
mod forecast;
mod health;
mod history;
mod number;
mod pace;
mod scatter;
mod series;
mod smooth;

use paceline_wire::{Activity, Health, Progress, Signals, State};

pub(crate) use self::history::{History, Sample};
use self::number::finite;
pub(crate) use self::number::number;
use self::pace::Pace;
use self::series::Series;
use self::smooth::Smooth;
use crate::doing::Task;

/// What the loop is doing, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Doing {
    pub(crate) task: Task,
    /// Since when, in seconds since the start.
    pub(crate) since: f64,
}

/// The signals at [`Progress::now`].
pub(crate) fn derive(history: &History, progress: &Progress, doing: Doing) -> Signals {
    let now = now(history, progress);
    let series = Series::new(history);
    let series = series.as_ref();
    let smooth = series.and_then(Smooth::new);
    let ended = matches!(progress.state, State::Finished | State::Failed);
    let pace = Pace::new(history, now).filter(|_| !ended);
    let steps = progress.step.zip(progress.total_steps);
    let left = steps.map(|(step, total)| number(total.saturating_sub(step)));
    // No forecast for a reached target, nor without a pace: such a job has ended.
    let forecast = |target: Option<f64>, reached_at: Option<f64>| {
        let target = target.filter(|_| reached_at.is_none())?;
        forecast::forecast(target, series?, progress, &pace?)
    };
    let Progress { targets, reached, .. } = progress;
    Signals {
        activity: activity::activity(history, progress.state, doing, now),
        quiet_seconds: quiet(history, progress, now),
        health: health::health(history, series, progress),
        loss_smoothed: smooth.map(|smooth| smooth.level_among(progress.eval.best)),
        loss_slope: smooth.and_then(|smooth| smooth.slope),
        steps_per_second: pace.map(|pace| pace.rate),
        progress_ratio: steps.and_then(|(step, total)| pace::ratio(step, total)),
        eta_seconds: pace.zip(left).and_then(|(pace, left)| pace.seconds(left)),
        to_acceptable: forecast(targets.acceptable, reached.acceptable_at),
        to_objective: forecast(targets.objective, reached.objective_at),
    }
}

/// What the job is doing and how its loss is, which costs far less than all signals.
pub(crate) fn condition(
    history: &History,
    progress: &Progress,
    doing: Doing,
) -> (Activity, Health) {
    let series = Series::new(history);
    let now = now(history, progress);
    (
        activity::activity(history, progress.state, doing, now),
        health::health(history, series.as_ref(), progress),
    )
}

/// The smoothed loss alone, which costs far less than all signals.
#[cfg(feature = "page")]
pub(crate) fn smoothed(history: &History, progress: &Progress) -> Option<f64> {
    let smooth = Smooth::new(&Series::new(history)?)?;
    Some(smooth.level_among(progress.eval.best))
}

/// Seconds since the start, never before the last sample.
fn now(history: &History, progress: &Progress) -> f64 {
    let sampled = history.last().map_or(0.0, |last| last.at);
    finite(progress.now - progress.started_at).map_or(sampled, |now| now.max(sampled))
}

/// Seconds since the last report, finite or not.
fn quiet(history: &History, progress: &Progress, now: f64) -> Option<f64> {
    let finite_at =
        progress.eval.updated_at.and_then(|updated_at| finite(updated_at - progress.started_at));
    let last = finite_at.into_iter().chain(history.active_at()).reduce(f64::max)?;
    finite((now - last).max(0.0))
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
