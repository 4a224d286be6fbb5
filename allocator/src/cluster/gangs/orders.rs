//! What a policy's answer asks of single services. Pure.

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::JobId;
use paceline_policy::cluster::gangs::Layout;
use paceline_policy::cluster::{Placement, Role, Scaling};

use super::job::{Job, Seat, Stands};
use super::seen::Seen;

/// One task is to have a place, or to lose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its job.
    pub job: JobId,
    /// What the task is called.
    pub task: String,
    /// Its service's id.
    pub service: String,
    /// Which of both.
    pub what: What,
    /// Whose word it is, and why.
    pub why: String,
}

/// What is to be done with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It goes to this machine, of this id.
    Place(String, String),
    /// It is taken back from this machine.
    Withdraw(String),
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Changes of single tasks.
    pub list: Vec<Order>,
    /// What jobs wait for.
    pub waits: BTreeMap<JobId, String>,
}

/// Tasks that are to be taken back whatever a policy says: those of jobs that have ended, which nothing
/// is left to do for.
pub(super) fn of_ended(seen: &Seen) -> Vec<Order> {
    withdraw_all(seen, |job, _| job.has_ended(), "its job has ended")
}

/// Tasks of jobs whose start was cut short: they are started anew as wholes.
pub(super) fn of_begun(seen: &Seen) -> Vec<Order> {
    let begun =
        |job: &Job, seat: &Seat| !job.has_ended() && !job.is_running() && seat.chosen.is_none();
    withdraw_all(seen, begun, "its start was cut short")
}

fn withdraw_all(seen: &Seen, is: impl Fn(&Job, &Seat) -> bool, why: &str) -> Vec<Order> {
    let mut orders = Vec::new();
    for (id, job) in &seen.jobs {
        for seat in job.seats.iter().filter(|seat| is(job, seat)) {
            if let Stands::Placed(node) = &seat.stands {
                orders.push(withdraw(id, seat, node, why.to_owned()));
            }
        }
    }
    orders
}

/// Tasks that go where their owner said, as far as that is a machine of the Swarm.
pub(super) fn of_owners(seen: &Seen) -> Orders {
    let mut orders = Orders::default();
    for (id, job) in seen.jobs.iter().filter(|(_, job)| job.is_whole() && !job.has_ended()) {
        let free = job.seats.iter().filter(|seat| seat.stands == Stands::Free);
        for (seat, node) in free.filter_map(|seat| Some((seat, seat.chosen.as_deref()?))) {
            let why = "its owner has chosen the machine".to_owned();
            if let Some(order) = place(seen, id, seat, node, why) {
                orders.list.push(order);
            } else {
                let why = format!("{}: no machine {node} takes tasks", seat.name);
                orders.waits.insert(id.clone(), why);
            }
        }
    }
    orders
}

/// What a policy of tasks asks for.
pub(super) fn of_placement(seen: &Seen, placement: &Placement) -> Orders {
    let seats: BTreeMap<&str, (&JobId, &Seat)> = seen
        .jobs
        .iter()
        .flat_map(|(id, job)| job.seats.iter().map(move |seat| (seat.name.as_str(), (id, seat))))
        .collect();
    let mut orders = Orders::default();
    for bound in &placement.place {
        let Some((id, seat)) = seats.get(bound.task.as_str()) else { continue };
        let why = format!("score {:.1}: {}", bound.score, bound.why);
        orders.list.extend(place(seen, id, seat, &bound.node, why));
    }
    for pending in &placement.pending {
        let Some((id, seat)) = seats.get(pending.task.as_str()) else { continue };
        // The first of its tasks speaks for a job.
        let why = || format!("{}: {}", seat.name, pending.why);
        orders.waits.entry((*id).clone()).or_insert_with(why);
    }
    orders
}

/// What a policy of whole jobs asks for.
pub(super) fn of_scaling(seen: &Seen, scaling: &Scaling) -> Orders {
    let mut orders = Orders::default();
    // One answer may name a job several times.
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for change in &scaling.scale_in {
        let Some(job) = seen.jobs.get(&change.job) else { continue };
        let here = |seat: &&Seat| seat.stands == Stands::Placed(change.node.clone());
        // Those that came last go first: the others have the lower numbers, from 0.
        for seat in job.of(Role::Worker).filter(here).rev().take(count(change.count)) {
            let order = withdraw(&change.job, seat, &change.node, change.why.to_string());
            orders.list.push(order);
        }
    }
    let grown = scaling.scale_out.iter().map(|change| {
        let workers = BTreeMap::from([(change.node.clone(), change.count)]);
        (&change.job, Layout { workers, ..Layout::default() }, &change.why)
    });
    let started = scaling.start.iter().map(|start| (&start.job, start.layout.clone(), &start.why));
    for (id, layout, why) in started.chain(grown) {
        let Some(job) = seen.jobs.get(id) else { continue };
        for (role, counts) in [(Role::Ps, &layout.ps), (Role::Worker, &layout.workers)] {
            for (node, many) in counts {
                let free: Vec<&Seat> = job
                    .of(role)
                    .filter(|seat| seat.stands == Stands::Free)
                    .filter(|seat| !taken.contains(seat.name.as_str()))
                    .take(count(*many))
                    .collect();
                for seat in free {
                    taken.insert(&seat.name);
                    orders.list.extend(place(seen, id, seat, node, why.to_string()));
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

fn place(seen: &Seen, job: &JobId, seat: &Seat, node: &str, why: String) -> Option<Order> {
    let machine = seen.machines.get(node)?;
    let what = What::Place(node.to_owned(), machine.id.clone());
    Some(order(job, seat, what, why))
}

fn withdraw(job: &JobId, seat: &Seat, node: &str, why: String) -> Order {
    order(job, seat, What::Withdraw(node.to_owned()), why)
}

fn order(job: &JobId, seat: &Seat, what: What, why: String) -> Order {
    let (task, service) = (seat.name.clone(), seat.service.clone());
    Order { job: job.clone(), task, service, what, why }
}

#[cfg(test)]
mod tests;
