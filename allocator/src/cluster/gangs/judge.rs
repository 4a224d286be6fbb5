//! Whose word it is where tasks go: that of jobs' ends, of their owners, and of a policy. Pure.

use paceline_policy::{GangFrame, GangPolicy, Moment, TaskFrame, TaskPolicy};
use serde::Serialize;

use super::orders::{self, Orders};
use super::seen::Seen;

/// Who decides.
#[derive(Debug)]
pub enum Mind {
    /// A policy of tasks.
    Tasks(Box<dyn TaskPolicy>),
    /// A policy of whole jobs.
    Gangs(Box<dyn GangPolicy>),
}

/// What a policy was asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Asked {
    /// One of tasks.
    Tasks(TaskFrame),
    /// One of whole jobs.
    Gangs(GangFrame),
}

/// A policy, and what it need not know.
#[derive(Debug)]
pub struct Judge {
    mind: Mind,
    /// When time began, in Unix seconds.
    epoch: f64,
    /// Whether every job that has a place has been started as a whole, as far as is known.
    whole: bool,
}

impl Judge {
    /// One that knows nothing of what was done before. Time began at `epoch`, in Unix seconds.
    pub fn new(mind: Mind, epoch: f64) -> Self {
        Self { mind, epoch, whole: false }
    }

    /// Not all that was said has been done.
    pub fn doubt(&mut self) {
        self.whole = false;
    }

    /// What is to be done, and the frame that the policy was asked, if it was.
    pub fn decide(&mut self, now: Moment, seen: &Seen) -> (Orders, Option<Asked>) {
        // The room of jobs that have ended is not offered before it is left.
        let mut ahead = orders::of_owners(seen);
        let mut is_settled = ahead.list.is_empty();
        if !std::mem::replace(&mut self.whole, true) && matches!(self.mind, Mind::Gangs(_)) {
            let begun = orders::of_begun(seen);
            is_settled &= begun.is_empty();
            ahead.list.extend(begun);
        }
        ahead.list.extend(orders::of_ended(seen));
        if !is_settled {
            // The policy decides once what was half done is whole or gone.
            return (ahead, None);
        }
        let (orders, frame) = match &mut self.mind {
            Mind::Tasks(policy) => {
                let frame = seen.task_frame(now);
                let answer = policy.decide(&frame);
                (orders::of_placement(seen, &answer), Asked::Tasks(frame))
            }
            Mind::Gangs(policy) => {
                let frame = seen.gang_frame(now, self.epoch);
                let answer = policy.decide(&frame);
                (orders::of_scaling(seen, &answer), Asked::Gangs(frame))
            }
        };
        ahead.list.extend(orders.list);
        ahead.waits.extend(orders.waits);
        (ahead, Some(frame))
    }
}

#[cfg(test)]
mod tests;
