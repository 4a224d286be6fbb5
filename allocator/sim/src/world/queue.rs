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
///
/// What a node is due for may be put off or brought forward: what the heap still holds for another
/// moment no longer counts. Those moments stand here and close together, so that nothing of a node
/// is touched for what does not happen.
#[derive(Debug)]
pub(super) struct Queue {
    arrivals: Peekable<IntoIter<(Key, What)>>,
    heap: BinaryHeap<Reverse<(Key, What)>>,
    nodes: Vec<Dues>,
    all: f64,
}

/// When a node is due for what.
#[derive(Clone, Copy, Debug)]
struct Dues {
    goal: f64,
    look: f64,
    decide: f64,
}

const NEVER: f64 = f64::INFINITY;

impl Queue {
    /// Jobs arrive at these moments, and nothing else is to happen yet on so many nodes.
    pub(super) fn new(arrivals: impl Iterator<Item = f64>, nodes: usize) -> Self {
        let arrival = |(index, at)| (Key(at), What::Arrive(index));
        let mut arrivals: Vec<(Key, What)> = arrivals.enumerate().map(arrival).collect();
        arrivals.sort_unstable();
        let nodes = vec![Dues { goal: NEVER, look: NEVER, decide: NEVER }; nodes];
        let arrivals = arrivals.into_iter().peekable();
        Self { arrivals, heap: BinaryHeap::new(), nodes, all: NEVER }
    }

    /// It happens at `at`, whatever else does.
    pub(super) fn push(&mut self, at: f64, what: What) {
        self.heap.push(Reverse((Key(at), what)));
    }

    /// It is due at `at`, and at no other moment.
    pub(super) fn set(&mut self, at: Option<f64>, what: What) {
        let at = at.unwrap_or(NEVER);
        let Some(due) = self.due(what).filter(|due| (**due).total_cmp(&at).is_ne()) else { return };
        *due = at;
        if at < NEVER {
            self.push(at, what);
        }
    }

    /// It is due at `at`, unless it is before that.
    pub(super) fn no_later(&mut self, at: f64, what: What) {
        if self.due(what).is_some_and(|due| at < *due) {
            self.set(Some(at), what);
        }
    }

    /// The next thing that happens.
    pub(super) fn pop(&mut self) -> Option<(f64, What)> {
        loop {
            let next = self.heap.peek().map(|Reverse(next)| *next);
            let arrival = self.arrivals.next_if(|arrival| next.is_none_or(|next| *arrival < next));
            let (Key(at), what) = match arrival {
                Some(arrival) => arrival,
                None => self.heap.pop()?.0,
            };
            match self.due(what) {
                Some(due) if due.total_cmp(&at).is_ne() => {}
                Some(due) => {
                    *due = NEVER;
                    return Some((at, what));
                }
                None => return Some((at, what)),
            }
        }
    }

    /// When this is due, if it is something that may be put off.
    fn due(&mut self, what: What) -> Option<&mut f64> {
        match what {
            What::Goal(node) => self.nodes.get_mut(node).map(|dues| &mut dues.goal),
            What::Look(node) => self.nodes.get_mut(node).map(|dues| &mut dues.look),
            What::Decide(node) => self.nodes.get_mut(node).map(|dues| &mut dues.decide),
            What::DecideAll => Some(&mut self.all),
            What::Recover(_)
            | What::Fail(_)
            | What::Crash(_)
            | What::Arrive(_)
            | What::Resume(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut queue: Queue) -> Vec<What> {
        std::iter::from_fn(|| queue.pop()).map(|(_, what)| what).collect()
    }

    #[test]
    fn what_happens_comes_by_time_and_at_one_moment_by_kind() {
        let mut queue = Queue::new([5.0, 1.0, 5.0].into_iter(), 10);
        for what in [What::DecideAll, What::Look(0), What::Goal(9)] {
            queue.set(Some(5.0), what);
        }
        queue.push(5.0, What::Fail(1));
        queue.set(Some(0.5), What::Decide(3));
        let all = all(queue);
        let at_five =
            [What::Goal(9), What::Fail(1), What::Arrive(0), What::Arrive(2), What::Look(0)];
        assert_eq!(all[..2], [What::Decide(3), What::Arrive(1)]);
        assert_eq!(all[2..7], at_five);
        assert_eq!(all[7..], [What::DecideAll]);
    }

    #[test]
    fn what_is_due_happens_once_and_at_the_moment_that_was_said_last() {
        let mut queue = Queue::new(std::iter::empty(), 2);
        queue.set(Some(3.0), What::Decide(0));
        queue.set(Some(1.0), What::Decide(0));
        queue.set(Some(3.0), What::Decide(0));
        queue.set(Some(2.0), What::Look(0));
        queue.set(None, What::Look(0));
        queue.no_later(4.0, What::Goal(1));
        queue.no_later(2.5, What::Goal(1));
        queue.no_later(2.6, What::Goal(1));
        assert_eq!(queue.pop(), Some((2.5, What::Goal(1))));
        queue.set(Some(2.5), What::Goal(1));
        assert_eq!(all(queue), [What::Goal(1), What::Decide(0)]);
    }
}
