//! What waits for a target, and the counts of what it got. Bounded: putting never blocks.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use paceline_reporter::wire::Forward;

use super::{Item, Outcome, Takes, lock};
use crate::clock::Clock;

/// The most events that wait: a job has few, and they are small.
const MAX_EVENTS: usize = 16;
/// The most readings that wait: only the newest counts.
const MAX_READINGS: usize = 1;

/// A target's inbox.
#[derive(Debug)]
pub(super) struct Inbox {
    capacity: usize,
    period: Duration,
    spacing: Duration,
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Item>,
    /// When the last item was taken or done, by the clock.
    taken_at: Option<Duration>,
    is_busy: bool,
    is_closed: bool,
    /// Whether the target's thread has taken all items and ended.
    is_done: bool,
    counts: Forward,
}

impl Inbox {
    /// An empty inbox.
    pub(super) fn new(takes: Takes) -> Self {
        let (capacity, period, spacing) = match takes {
            Takes::Readings { period, spacing } => (MAX_READINGS, period, spacing),
            Takes::Events(_) => (MAX_EVENTS, Duration::ZERO, Duration::ZERO),
        };
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { capacity, period, spacing, clock: Clock::start(), state, changed }
    }

    /// Adds an item. The oldest makes room. It counts as dropped if the target was too slow for it,
    /// but not if it only waited for the period's end.
    pub(super) fn put(&self, item: Item) {
        let mut state = lock(&self.state);
        if state.waiting.len() >= self.capacity {
            state.waiting.pop_front();
            if state.is_busy {
                state.counts.dropped += 1;
            }
        }
        state.waiting.push_back(item);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the next item, and for the time at which it may be sent. `None` at the end.
    pub(super) fn next(&self) -> Option<Item> {
        let mut state = lock(&self.state);
        loop {
            let wait = self.wait(&state);
            if wait.is_zero()
                && let Some(item) = state.waiting.pop_front()
            {
                state.is_busy = true;
                state.taken_at = Some(self.clock.elapsed());
                return Some(item);
            }
            if state.waiting.is_empty() && state.is_closed {
                return None;
            }
            state = if state.waiting.is_empty() {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.changed.wait_timeout(state, wait);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// How long the next item must wait.
    fn wait(&self, state: &State) -> Duration {
        let is_last = matches!(state.waiting.front(), Some(Item::Reading { is_last: true, .. }));
        let apart = if is_last || state.is_closed { self.spacing } else { self.period };
        let due = state.taken_at.map_or(Duration::ZERO, |at| at.saturating_add(apart));
        due.saturating_sub(self.clock.elapsed())
    }

    /// Counts what became of the item that was taken last.
    pub(super) fn done(&self, outcome: Result<Outcome, String>) {
        let mut state = lock(&self.state);
        state.is_busy = false;
        // From its end, so that a receiver sees at least this much time between two.
        state.taken_at = Some(self.clock.elapsed());
        let counts = &mut state.counts;
        match outcome {
            Ok(Outcome::Sent) => (counts.sent, counts.error) = (counts.sent + 1, None),
            Ok(Outcome::Nothing) => {}
            Err(error) => (counts.failed, counts.error) = (counts.failed + 1, Some(error)),
        }
    }

    /// No further item comes.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// The target's thread ends.
    pub(super) fn finish(&self) {
        lock(&self.state).is_done = true;
    }

    /// Whether the target's thread has ended.
    pub(super) fn is_done(&self) -> bool {
        lock(&self.state).is_done
    }

    /// The counts; their name is empty.
    pub(super) fn counts(&self) -> Forward {
        lock(&self.state).counts.clone()
    }
}
