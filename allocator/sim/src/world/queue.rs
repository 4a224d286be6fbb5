use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::vec::IntoIter;

use crate::fluid::Index;
use crate::number::Key;

/// An event of the simulation. Simultaneous events are handled in this order, so that a decision
/// sees everything that happened with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimEvent {
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
    /// A job that was moved or has failed runs again.
    Resume(Index),
    /// This node is sampled.
    Sample(usize),
    /// The policy of this node runs.
    Decide(usize),
    /// The policy of the cluster runs.
    DecideAll,
}

/// The events to come, by time. Arrivals are known from the start, and have a list of their own. So
/// the heap holds only events of running jobs, and the cost of an event does not depend on the
/// number of future jobs.
///
/// A node's events may be postponed or advanced. The heap then still has the old entries, which are
/// ignored. The valid times are stored here, contiguously, so that ignored entries touch nothing of
/// the node.
#[derive(Debug)]
pub(super) struct Queue {
    arrivals: Peekable<IntoIter<(Key, SimEvent)>>,
    heap: BinaryHeap<Reverse<(Key, SimEvent)>>,
    nodes: Vec<Dues>,
    all: f64,
}

/// When a node's events are due.
#[derive(Clone, Copy, Debug)]
struct Dues {
    goal: f64,
    sample: f64,
    decide: f64,
}

const NEVER: f64 = f64::INFINITY;

impl Queue {
    /// A queue of arrivals at these moments, without other events, for so many nodes.
    pub(super) fn new(arrivals: impl Iterator<Item = f64>, nodes: usize) -> Self {
        let arrival = |(index, at)| (Key(at), SimEvent::Arrive(index));
        let mut arrivals: Vec<(Key, SimEvent)> = arrivals.enumerate().map(arrival).collect();
        arrivals.sort_unstable();
        let nodes = vec![Dues { goal: NEVER, sample: NEVER, decide: NEVER }; nodes];
        let arrivals = arrivals.into_iter().peekable();
        Self { arrivals, heap: BinaryHeap::new(), nodes, all: NEVER }
    }

    /// Adds an event at `at`, whatever else happens.
    pub(super) fn push(&mut self, at: f64, event: SimEvent) {
        self.heap.push(Reverse((Key(at), event)));
    }

    /// Sets the only time of an event; `None` cancels it.
    pub(super) fn set(&mut self, at: Option<f64>, event: SimEvent) {
        let at = at.unwrap_or(NEVER);
        let Some(due) = self.due(event).filter(|due| (**due).total_cmp(&at).is_ne()) else {
            return;
        };
        *due = at;
        if at < NEVER {
            self.push(at, event);
        }
    }

    /// Sets the time of an event to `at`, unless it is due before.
    pub(super) fn no_later(&mut self, at: f64, event: SimEvent) {
        if self.due(event).is_some_and(|due| at < *due) {
            self.set(Some(at), event);
        }
    }

    /// Removes and returns the next event.
    pub(super) fn pop(&mut self) -> Option<(f64, SimEvent)> {
        loop {
            let next = self.heap.peek().map(|Reverse(next)| *next);
            let arrival = self.arrivals.next_if(|arrival| next.is_none_or(|next| *arrival < next));
            let (Key(at), event) = match arrival {
                Some(arrival) => arrival,
                None => self.heap.pop()?.0,
            };
            match self.due(event) {
                Some(due) if due.total_cmp(&at).is_ne() => {}
                Some(due) => {
                    *due = NEVER;
                    return Some((at, event));
                }
                None => return Some((at, event)),
            }
        }
    }

    /// The time of an event that may be postponed; `None` for other events.
    fn due(&mut self, event: SimEvent) -> Option<&mut f64> {
        match event {
            SimEvent::Goal(node) => self.nodes.get_mut(node).map(|dues| &mut dues.goal),
            SimEvent::Sample(node) => self.nodes.get_mut(node).map(|dues| &mut dues.sample),
            SimEvent::Decide(node) => self.nodes.get_mut(node).map(|dues| &mut dues.decide),
            SimEvent::DecideAll => Some(&mut self.all),
            SimEvent::Recover(_)
            | SimEvent::Fail(_)
            | SimEvent::Crash(_)
            | SimEvent::Arrive(_)
            | SimEvent::Resume(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut queue: Queue) -> Vec<SimEvent> {
        std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect()
    }

    #[test]
    fn events_are_ordered_by_time_then_by_kind() {
        let mut queue = Queue::new([5.0, 1.0, 5.0].into_iter(), 10);
        for event in [SimEvent::DecideAll, SimEvent::Sample(0), SimEvent::Goal(9)] {
            queue.set(Some(5.0), event);
        }
        queue.push(5.0, SimEvent::Fail(1));
        queue.set(Some(0.5), SimEvent::Decide(3));
        let all = all(queue);
        let at_five = [
            SimEvent::Goal(9),
            SimEvent::Fail(1),
            SimEvent::Arrive(0),
            SimEvent::Arrive(2),
            SimEvent::Sample(0),
        ];
        assert_eq!(all[..2], [SimEvent::Decide(3), SimEvent::Arrive(1)]);
        assert_eq!(all[2..7], at_five);
        assert_eq!(all[7..], [SimEvent::DecideAll]);
    }

    #[test]
    fn due_event_happens_once_at_its_last_set_time() {
        let mut queue = Queue::new(std::iter::empty(), 2);
        queue.set(Some(3.0), SimEvent::Decide(0));
        queue.set(Some(1.0), SimEvent::Decide(0));
        queue.set(Some(3.0), SimEvent::Decide(0));
        queue.set(Some(2.0), SimEvent::Sample(0));
        queue.set(None, SimEvent::Sample(0));
        queue.no_later(4.0, SimEvent::Goal(1));
        queue.no_later(2.5, SimEvent::Goal(1));
        queue.no_later(2.6, SimEvent::Goal(1));
        assert_eq!(queue.pop(), Some((2.5, SimEvent::Goal(1))));
        queue.set(Some(2.5), SimEvent::Goal(1));
        assert_eq!(all(queue), [SimEvent::Goal(1), SimEvent::Decide(0)]);
    }
}
