//! Notices events in readings. Pure: the time is that of the readings.

use std::sync::Arc;

use paceline_reporter::wire::{Activity, Health, Progress, State};

use super::event::{Event, Kind};

/// A loss must not be finite for so many seconds: with mixed precision, single steps often are not.
const NONFINITE_TIME: f64 = 5.0;
/// The fewest seconds between two events of a kind that can happen again.
const REPEAT_TIME: f64 = 60.0;

/// What earlier readings showed.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    acceptable: Once,
    objective: Once,
    ended: Once,
    stalled: Again,
    diverging: Again,
    /// Since when the loss has not been finite.
    nonfinite_since: Option<f64>,
}

/// An event that happens at most once.
#[derive(Debug, Default)]
struct Once(bool);

impl Once {
    fn happens(&mut self, now: bool) -> bool {
        now && !std::mem::replace(&mut self.0, true)
    }
}

/// An event that may happen again once it is over.
#[derive(Debug, Default)]
struct Again {
    lasts: bool,
    last_at: Option<f64>,
}

impl Again {
    fn happens(&mut self, now: bool, at: f64) -> bool {
        let begins = now && !std::mem::replace(&mut self.lasts, now);
        self.lasts = now;
        let is_due = self.last_at.is_none_or(|last| at - last >= REPEAT_TIME);
        if begins && is_due {
            self.last_at = Some(at);
        }
        begins && is_due
    }
}

impl Watcher {
    /// The events that a reading shows, in the order in which they happened.
    pub(super) fn observe(&mut self, progress: &Arc<Progress>, is_last: bool) -> Vec<Arc<Event>> {
        let Progress { now, started_at, signals, state, .. } = &**progress;
        let has_ended = matches!(state, State::Finished | State::Failed);
        // What an earlier process reached is not an event of this one.
        let reached = |at: Option<f64>| at.is_some_and(|at| at >= *started_at);
        let is_nonfinite = signals.health == Health::Nonfinite;
        self.nonfinite_since =
            if is_nonfinite { self.nonfinite_since.or(Some(*now)) } else { None };
        let lasts = self
            .nonfinite_since
            .is_some_and(|since| now - since >= NONFINITE_TIME || is_last || has_ended);
        let diverges = signals.health == Health::Diverging || lasts;
        let is_stalled = signals.activity == Activity::Stalled;
        let kinds = [
            (Kind::Acceptable, self.acceptable.happens(reached(progress.reached.acceptable_at))),
            (Kind::Objective, self.objective.happens(reached(progress.reached.objective_at))),
            (Kind::Stalled, self.stalled.happens(is_stalled, *now)),
            (Kind::Diverging, self.diverging.happens(diverges, *now)),
            (
                if *state == State::Failed { Kind::Failed } else { Kind::Finished },
                self.ended.happens(has_ended),
            ),
        ];
        let happened = kinds.into_iter().filter(|(_, happens)| *happens);
        happened.map(|(kind, _)| Arc::new(Event { kind, progress: Arc::clone(progress) })).collect()
    }
}
