//! What a job is at, and whether it has come to a standstill.
//!
//! A job that loads, compiles, evaluates or saves makes no steps and is well; one whose CPU share
//! was cut makes them seldom. Only what lasts far longer than it ever did of late is a stall.

use paceline_wire::{Activity, State};

use super::Doing;
use super::Task;
use super::history::History;

/// Loading and compiling may take so long before the first report, in seconds.
const FIRST: f64 = 1800.0;
/// The first steps may take so long: some are compiled anew, or tried in several ways.
const WARM_UP: f64 = 300.0;
/// So many buckets with a time of their own, and the steps are known.
const WARM: usize = 4;
/// No wait is a stall before so many seconds.
const SHORTEST: f64 = 30.0;
/// An announced pause is a stall after so many seconds...
const PAUSE: f64 = 900.0;
/// ...and so many times the longest before it.
const PAUSES: f64 = 4.0;
/// Waiting for a step is a stall after so many times the longest wait of late...
const GAPS: f64 = 3.0;
/// ...and so many times a usual step: the CPU share may have become as much smaller.
const STEPS: f64 = 20.0;

/// What a job is at, `now` seconds after its start.
pub(crate) fn activity(history: &History, state: State, doing: Doing, now: f64) -> Activity {
    if matches!(state, State::Finished | State::Failed) {
        return Activity::Ended;
    }
    let at = |activity, stalled| if stalled { Activity::Stalled } else { activity };
    let since = now - doing.since;
    let pause_limit = PAUSE.max(PAUSES * history.longest_pause());
    match (doing.task, history.active_at()) {
        (Task::Evaluating, _) => at(Activity::Evaluating, since > pause_limit),
        (Task::Checkpointing, _) => at(Activity::Checkpointing, since > pause_limit),
        // A report has come since the last sample.
        (Task::Training, None) if state == State::Running => Activity::Training,
        (Task::Training, None) => at(Activity::Starting, now > FIRST),
        (Task::Training, Some(active_at)) => {
            // What the process slept through counts for nothing, and a pause ends a wait.
            let waited = (now - active_at - history.paused()).min(since);
            at(Activity::Training, waited > step_limit(history))
        }
    }
}

/// How long a step may take, in seconds.
fn step_limit(history: &History) -> f64 {
    let half = history.later_half();
    let longest = half.iter().map(|bucket| bucket.gap).fold(0.0, f64::max);
    let usual = history.typical_gap().unwrap_or(0.0);
    let least = if history.buckets().len() <= WARM { WARM_UP } else { SHORTEST };
    least.max(GAPS * longest).max(STEPS * usual)
}

#[cfg(test)]
mod tests;
