use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::fluid::Index;
use crate::number::Key;

/// Something that happens at a moment. What happens at one moment happens in this order: whoever
/// decides sees all that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A job on this node reaches its next goal.
    Goal(usize),
    /// A job arrives.
    Arrive(Index),
    /// A job that was moved begins to run again.
    Resume(Index),
    /// This node is looked at.
    Look(usize),
    /// The policy of this node runs.
    Decide(usize),
    /// The policy of the cluster runs.
    DecideAll,
}

/// What is to happen, by time.
#[derive(Debug, Default)]
pub(super) struct Queue(BinaryHeap<Reverse<(Key, What)>>);

impl Queue {
    pub(super) fn push(&mut self, at: f64, what: What) {
        self.0.push(Reverse((Key(at), what)));
    }

    pub(super) fn pop(&mut self) -> Option<(f64, What)> {
        self.0.pop().map(|Reverse((at, what))| (at.0, what))
    }
}

/// When something is due that may be put off or brought forward: what the queue still holds for
/// another moment no longer counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due(Option<f64>);

impl Due {
    /// It is due at `at`, and at no other moment.
    pub(super) fn set(&mut self, at: Option<f64>, what: What, queue: &mut Queue) {
        if self.0 != at {
            self.0 = at;
            if let Some(at) = at {
                queue.push(at, what);
            }
        }
    }

    /// It is due at `at`, unless it is before that.
    pub(super) fn no_later(&mut self, at: f64, what: What, queue: &mut Queue) {
        if self.0.is_none_or(|before| at < before) {
            self.set(Some(at), what, queue);
        }
    }

    /// Whether that is now; then it no longer is.
    pub(super) fn take(&mut self, now: f64) -> bool {
        let due = self.0 == Some(now);
        if due {
            self.0 = None;
        }
        due
    }
}
