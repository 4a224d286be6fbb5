//! Turns a policy's answer into orders for single services. Pure.

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::JobId;
use paceline_policy::cluster::gangs::Layout;
use paceline_policy::cluster::{Placement, Role, Scaling};

use super::job::{GangTask, Job, PlacementState};
use super::state::SwarmState;

/// An order to place or withdraw one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its job.
    pub job: JobId,
    /// The task's name.
    pub task: String,
    /// Its service's id.
    pub service: String,
    /// The action.
    pub action: Action,
    /// The reason.
    pub why: String,
}

/// An action on a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Place it on the machine with this name and id.
    Place(String, String),
    /// Withdraw it from this machine.
    Withdraw(String),
}

/// The result of one decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Orders for single tasks.
    pub list: Vec<Order>,
    /// The reasons why jobs wait.
    pub waits: BTreeMap<JobId, String>,
}

/// Withdraws the remaining tasks of jobs that have ended.
pub(super) fn of_ended(state: &SwarmState) -> Vec<Order> {
    withdraw_all(state, |job, _| job.has_ended(), "its job has ended")
}

/// Withdraws the tasks of jobs whose start was interrupted, so that they can start completely.
pub(super) fn of_begun(state: &SwarmState) -> Vec<Order> {
    let begun =
        |job: &Job, task: &GangTask| !job.has_ended() && !job.is_running() && task.chosen.is_none();
    withdraw_all(state, begun, "its start was interrupted")
}

fn withdraw_all(state: &SwarmState, is: impl Fn(&Job, &GangTask) -> bool, why: &str) -> Vec<Order> {
    let mut orders = Vec::new();
    for (id, job) in &state.jobs {
        for task in job.tasks.iter().filter(|task| is(job, task)) {
            if let PlacementState::Placed(node) = &task.placement {
                orders.push(withdraw(id, task, node, why.to_owned()));
            }
        }
    }
    orders
}

/// Places tasks on the machines that their owner chose, if these take tasks.
pub(super) fn of_owners(state: &SwarmState) -> Orders {
    let mut orders = Orders::default();
    for (id, job) in state.jobs.iter().filter(|(_, job)| job.is_whole() && !job.has_ended()) {
        let free = job.tasks.iter().filter(|task| task.placement == PlacementState::Free);
        for (task, node) in free.filter_map(|task| Some((task, task.chosen.as_deref()?))) {
            let why = "its owner has chosen the machine".to_owned();
            if let Some(order) = place(state, id, task, node, why) {
                orders.list.push(order);
            } else {
                let why = format!("{}: machine {node} is unknown or takes no tasks", task.name);
                orders.waits.insert(id.clone(), why);
            }
        }
    }
    orders
}

/// Orders for the answer of a policy of tasks.
pub(super) fn of_placement(state: &SwarmState, placement: &Placement) -> Orders {
    let tasks: BTreeMap<&str, (&JobId, &GangTask)> = state
        .jobs
        .iter()
        .flat_map(|(id, job)| job.tasks.iter().map(move |task| (task.name.as_str(), (id, task))))
        .collect();
    let mut orders = Orders::default();
    for bound in &placement.place {
        let Some((id, task)) = tasks.get(bound.task.as_str()) else { continue };
        let why = format!("score {:.1}: {}", bound.score, bound.why);
        orders.list.extend(place(state, id, task, &bound.node, why));
    }
    for pending in &placement.pending {
        let Some((id, task)) = tasks.get(pending.task.as_str()) else { continue };
        // A job shows the reason of its first pending task.
        let why = || format!("{}: {}", task.name, pending.why);
        orders.waits.entry((*id).clone()).or_insert_with(why);
    }
    orders
}

/// Orders for the answer of a policy of whole jobs.
pub(super) fn of_scaling(state: &SwarmState, scaling: &Scaling) -> Orders {
    let mut orders = Orders::default();
    // One answer may name a job several times.
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for change in &scaling.scale_in {
        let Some(job) = state.jobs.get(&change.job) else { continue };
        let here = |task: &&GangTask| task.placement == PlacementState::Placed(change.node.clone());
        // The highest indices go first, so that the remaining tasks are numbered from 0.
        for task in job.with_role(Role::Worker).filter(here).rev().take(count(change.count)) {
            let order = withdraw(&change.job, task, &change.node, change.why.to_string());
            orders.list.push(order);
        }
    }
    let grown = scaling.scale_out.iter().map(|change| {
        let workers = BTreeMap::from([(change.node.clone(), change.count)]);
        (&change.job, Layout { workers, ..Layout::default() }, &change.why)
    });
    let started = scaling.start.iter().map(|start| (&start.job, start.layout.clone(), &start.why));
    for (id, layout, why) in started.chain(grown) {
        let Some(job) = state.jobs.get(id) else { continue };
        for (role, counts) in [(Role::Ps, &layout.ps), (Role::Worker, &layout.workers)] {
            for (node, many) in counts {
                let free: Vec<&GangTask> = job
                    .with_role(role)
                    .filter(|task| task.placement == PlacementState::Free)
                    .filter(|task| !taken.contains(task.name.as_str()))
                    .take(count(*many))
                    .collect();
                for task in free {
                    taken.insert(&task.name);
                    orders.list.extend(place(state, id, task, node, why.to_string()));
                }
            }
        }
    }
    let waits =
        scaling.waiting.iter().map(|waiting| (waiting.job.clone(), waiting.why.to_string()));
    orders.waits.extend(waits);
    orders
}

fn count(many: u32) -> usize {
    usize::try_from(many).unwrap_or(usize::MAX)
}

fn place(
    state: &SwarmState,
    job: &JobId,
    task: &GangTask,
    node: &str,
    why: String,
) -> Option<Order> {
    let machine = state.machines.get(node)?;
    let action = Action::Place(node.to_owned(), machine.id.clone());
    Some(order(job, task, action, why))
}

fn withdraw(job: &JobId, task: &GangTask, node: &str, why: String) -> Order {
    order(job, task, Action::Withdraw(node.to_owned()), why)
}

fn order(job: &JobId, task: &GangTask, action: Action, why: String) -> Order {
    let (task, service) = (task.name.clone(), task.service.clone());
    Order { job: job.clone(), task, service, action, why }
}

#[cfg(test)]
mod tests;
