//! What a job is doing, and whether it has stalled.
//!
//! A job that loads, compiles, evaluates or saves makes no steps but is healthy. One whose CPU share
//! was cut makes few. Only a wait far longer than any recent one is a stall.

use paceline_wire::{Activity, State};

use super::Doing;
use super::Task;
use super::history::History;

/// The longest time before the first report, for loading and compiling, in seconds.
const START_LIMIT: f64 = 1800.0;
/// The longest of the first steps, in seconds: some are compiled, or tried in several ways.
const WARM_UP_LIMIT: f64 = 300.0;
/// Buckets after which the duration of steps is known.
const WARM_UP_BUCKETS: usize = 4;
/// The shortest wait that can be a stall, in seconds.
const MIN_STALL: f64 = 30.0;
/// An announced pause is a stall if it is longer than this, in seconds...
const PAUSE_LIMIT: f64 = 900.0;
/// ...and than this multiple of the longest pause before it.
const PAUSE_FACTOR: f64 = 4.0;
/// Waiting for a step is a stall if it is longer than this multiple of the longest recent wait...
const GAP_FACTOR: f64 = 3.0;
/// ...and than this multiple of a typical step: the CPU share may have been cut that much.
const STEP_FACTOR: f64 = 20.0;

/// What a job is doing, `now` seconds after its start.
pub(crate) fn activity(history: &History, state: State, doing: Doing, now: f64) -> Activity {
    if matches!(state, State::Finished | State::Failed) {
        return Activity::Ended;
    }
    let at = |activity, stalled| if stalled { Activity::Stalled } else { activity };
    let since = now - doing.since;
    let pause_limit = PAUSE_LIMIT.max(PAUSE_FACTOR * history.longest_pause());
    match (doing.task, history.active_at()) {
        (Task::Evaluating, _) => at(Activity::Evaluating, since > pause_limit),
        (Task::Checkpointing, _) => at(Activity::Checkpointing, since > pause_limit),
        // A report has arrived since the last sample. Those of an earlier process make the state as well.
        (Task::Training, None) if state == State::Running && !history.continues() => {
            Activity::Training
        }
        (Task::Training, None) => at(Activity::Starting, now > START_LIMIT),
        (Task::Training, Some(active_at)) => {
            // Time in which the process was stopped does not count, and a pause ends a wait.
            let waited = (now - active_at - history.paused()).min(since);
            at(Activity::Training, waited > step_limit(history))
        }
    }
}

/// The longest time that a step may take, in seconds.
fn step_limit(history: &History) -> f64 {
    let half = history.later_half();
    let longest = half.iter().map(|bucket| bucket.gap).fold(0.0, f64::max);
    let usual = history.typical_gap().unwrap_or(0.0);
    let least = if history.buckets().len() <= WARM_UP_BUCKETS { WARM_UP_LIMIT } else { MIN_STALL };
    least.max(GAP_FACTOR * longest).max(STEP_FACTOR * usual)
}

#[cfg(test)]
mod tests;
