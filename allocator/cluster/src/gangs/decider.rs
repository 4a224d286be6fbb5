//! Decides where tasks go, by the ends of jobs, by their owners' choices, and by a policy. Pure.

use paceline_policy::{GangFrame, GangPolicy, Moment, TaskFrame, TaskPolicy};
use serde::Serialize;

use super::orders::{self, Order, Orders};
use super::state::SwarmState;

/// The policy that places tasks.
#[derive(Debug)]
pub enum PlacementPolicy {
    /// A policy of tasks.
    Tasks(Box<dyn TaskPolicy>),
    /// A policy of whole jobs.
    Gangs(Box<dyn GangPolicy>),
}

/// The frame that a policy answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PolicyFrame {
    /// A frame of tasks.
    Tasks(TaskFrame),
    /// A frame of whole jobs.
    Gangs(GangFrame),
}

/// A policy, and the state that it need not know.
#[derive(Debug)]
pub struct Decider {
    policy: PlacementPolicy,
    /// The start of the run, in Unix seconds.
    epoch: f64,
    /// Whether every placed job is known to have been started completely.
    whole: bool,
    /// The owners' orders of the last decision.
    ordered: Vec<Order>,
}

impl Decider {
    /// Starts without knowledge of earlier runs. `epoch` is the start of the run, in Unix
    /// seconds.
    pub fn new(policy: PlacementPolicy, epoch: f64) -> Self {
        Self { policy, epoch, whole: false, ordered: Vec::new() }
    }

    /// Some orders failed: jobs may be started only in part.
    pub fn doubt(&mut self) {
        self.whole = false;
    }

    /// The orders, and the frame that the policy answered, if it was asked.
    pub fn decide(&mut self, now: Moment, state: &SwarmState) -> (Orders, Option<PolicyFrame>) {
        // Resources of ended jobs are offered only after their tasks have left.
        let mut ahead = orders::of_owners(state);
        // An order that comes again was not carried out: it failed, or this is a dry run. Only its own job
        // waits for it.
        let mut is_settled = ahead.list.iter().all(|order| self.ordered.contains(order));
        self.ordered.clone_from(&ahead.list);
        if !std::mem::replace(&mut self.whole, true)
            && matches!(self.policy, PlacementPolicy::Gangs(_))
        {
            let begun = orders::of_begun(state);
            is_settled &= begun.is_empty();
            ahead.list.extend(begun);
        }
        ahead.list.extend(orders::of_ended(state));
        if !is_settled {
            // The policy decides once partly started jobs are complete or withdrawn.
            return (ahead, None);
        }
        let (orders, frame) = match &mut self.policy {
            PlacementPolicy::Tasks(policy) => {
                let frame = state.task_frame(now);
                let answer = policy.decide(&frame);
                (orders::of_placement(state, &answer), PolicyFrame::Tasks(frame))
            }
            PlacementPolicy::Gangs(policy) => {
                let frame = state.gang_frame(now, self.epoch);
                let answer = policy.decide(&frame);
                (orders::of_scaling(state, &answer), PolicyFrame::Gangs(frame))
            }
        };
        ahead.list.extend(orders.list);
        ahead.waits.extend(orders.waits);
        (ahead, Some(frame))
    }
}

#[cfg(test)]
mod tests;
