use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::vec::IntoIter;

use crate::fluid::Index;
use crate::number::Key;

/// Something that happens at a moment. What happens at one moment happens in this order: whoever
/// decides sees all that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A job on this node reaches its next goal.
    Goal(usize),
    /// This node works again.
    Recover(usize),
    /// This node fails.
    Fail(usize),
    /// This job crashes.
    Crash(Index),
    /// A job arrives.
    Arrive(Index),
    /// A job that was moved or has failed begins to run again.
    Resume(Index),
    /// This node is looked at.
    Look(usize),
    /// The policy of this node runs.
    Decide(usize),
    /// The policy of the cluster runs.
    DecideAll,
}

/// What is to happen, by time. Arrivals are known from the start: they stand in a list of their
/// own, so that the heap holds only what runs and an event costs the same however many are to come.
#[derive(Debug)]
pub(super) struct Queue {
    arrivals: Peekable<IntoIter<(Key, What)>>,
    heap: BinaryHeap<Reverse<(Key, What)>>,
}

impl Queue {
    /// Jobs arrive at these moments, and nothing else is to happen yet.
    pub(super) fn new(arrivals: impl Iterator<Item = f64>) -> Self {
        let arrival = |(index, at)| (Key(at), What::Arrive(index));
        let mut arrivals: Vec<(Key, What)> = arrivals.enumerate().map(arrival).collect();
        arrivals.sort_unstable();
        Self { arrivals: arrivals.into_iter().peekable(), heap: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, at: f64, what: What) {
        self.heap.push(Reverse((Key(at), what)));
    }

    pub(super) fn pop(&mut self) -> Option<(f64, What)> {
        let next = self.heap.peek().map(|Reverse(next)| *next);
        let arrival = self.arrivals.next_if(|arrival| next.is_none_or(|next| *arrival < next));
        let (at, what) = match arrival {
            Some(arrival) => arrival,
            None => self.heap.pop()?.0,
        };
        Some((at.0, what))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_comes_by_time_and_at_one_moment_by_kind() {
        let mut queue = Queue::new([5.0, 1.0, 5.0].into_iter());
        for what in [What::DecideAll, What::Look(0), What::Fail(1), What::Goal(9)] {
            queue.push(5.0, what);
        }
        queue.push(0.5, What::Decide(3));
        let all: Vec<What> = std::iter::from_fn(|| queue.pop()).map(|(_, what)| what).collect();
        let at_five =
            [What::Goal(9), What::Fail(1), What::Arrive(0), What::Arrive(2), What::Look(0)];
        assert_eq!(all[..2], [What::Decide(3), What::Arrive(1)]);
        assert_eq!(all[2..7], at_five);
        assert_eq!(all[7..], [What::DecideAll]);
    }
}
