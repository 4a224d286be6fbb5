//! What an engine says of distributed jobs and of the room for them, as frames for policies. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bollard::models::{Service, ServiceSpec, Task, TaskState};
use paceline_policy::cluster::gangs::GangFrame;
use paceline_policy::cluster::{Role, Task as TaskOfFrame, TaskFrame};
use paceline_policy::frame::Node;
use paceline_policy::{JobId, Moment};

use super::job::{Amount, Job, Seat, Stands};
use super::spec::Ticket;
use crate::cluster::engine::{by_service, is_over, placed};
use crate::cluster::swarm::Member;
use crate::stamp;

/// All that is there at one moment.
#[derive(Debug, Default)]
pub struct Seen {
    /// Machines that take tasks, by name, with the room that is left there by what is no part of any
    /// distributed job.
    pub machines: BTreeMap<String, Machine>,
    /// By name.
    pub jobs: BTreeMap<JobId, Job>,
}

/// A machine that takes tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its id in the Swarm.
    pub id: String,
    room: Amount,
}

impl Seen {
    /// What the engine says. Machines have the names that they have everywhere here.
    pub fn of(members: &[Member], services: &[Service], tasks: &[Task]) -> Self {
        let of_service = by_service(tasks);
        let names = Names::new(members);
        let mut seen = Self::default();
        let mut of_gangs: BTreeSet<&str> = BTreeSet::new();
        for service in services {
            let Some(id) = service.id.as_deref() else { continue };
            let tasks = of_service.get(id).map_or(&[][..], Vec::as_slice);
            if seen.add(service, tasks, &names).is_some() {
                of_gangs.insert(id);
            }
        }
        for job in seen.jobs.values_mut() {
            job.seats.sort_by_key(|seat| (seat.role == Role::Worker, seat.index));
        }
        for member in members.iter().filter(|member| member.takes_tasks && member.trouble.is_none())
        {
            let room = Amount { cpu: member.cpus, memory: member.memory };
            let machine = Machine { id: member.id.clone(), room };
            seen.machines.insert(member.name.clone(), machine);
        }
        let others = tasks.iter().filter(|task| {
            let of_gang = task.service_id.as_deref().is_some_and(|id| of_gangs.contains(id));
            !of_gang && !task_is_over(task)
        });
        for task in others {
            let name = task.node_id.as_deref().map(|id| names.of(id));
            let Some(machine) = name.and_then(|name| seen.machines.get_mut(&name)) else {
                continue;
            };
            let resources = task.spec.as_ref().and_then(|spec| spec.resources.as_ref());
            let need = Amount::of(resources.and_then(|resources| resources.reservations.as_ref()));
            machine.room = machine.room.without(need);
        }
        seen
    }

    /// Takes in a service, if it is a task of a distributed job.
    fn add(&mut self, service: &Service, tasks: &[&Task], names: &Names<'_>) -> Option<()> {
        let spec = service.spec.as_ref()?;
        let labels = spec.labels.as_ref()?;
        let ticket = Ticket::read(|label| labels.get(label).map(String::as_str))?;
        let submitted = service.created_at.as_deref().and_then(stamp::parse);
        let id = JobId::new(ticket.job.as_str()).ok()?;
        let job = self.jobs.entry(id).or_insert_with(|| Job::new(&ticket));
        job.submitted = job.submitted.min(submitted.unwrap_or(f64::INFINITY));
        let resources = spec.task_template.as_ref().and_then(|task| task.resources.as_ref());
        let reserved = resources.and_then(|resources| resources.reservations.as_ref());
        job.seats.push(Seat {
            service: service.id.clone()?,
            name: spec.name.clone()?,
            role: ticket.role,
            index: ticket.index,
            chosen: ticket.node,
            need: Amount::of(reserved),
            stands: stands(spec, tasks, names),
        });
        Some(())
    }

    /// What a policy of tasks is asked: those of jobs that have not ended. Those of others take room.
    pub(super) fn task_frame(&self, now: Moment) -> TaskFrame {
        let ended = |job: &Job, _: &Seat| job.has_ended();
        let going = self.jobs.iter().filter(|(_, job)| job.is_ready() && !job.has_ended());
        let tasks = going.flat_map(|(id, job)| {
            job.seats.iter().filter_map(move |seat| {
                if matches!(seat.stands, Stands::Over(..)) {
                    return None;
                }
                Some(TaskOfFrame {
                    id: JobId::new(seat.name.clone()).ok()?,
                    job: id.clone(),
                    role: seat.role,
                    cpu: Some(seat.need.cpu),
                    memory: Some(seat.need.memory),
                    node: seat.node().map(str::to_owned),
                })
            })
        });
        TaskFrame { t: now.seconds(), nodes: self.nodes(ended), tasks: tasks.collect() }
    }

    /// What a policy of whole jobs is asked. `epoch` is when time began, in Unix seconds.
    ///
    /// Such a policy counts what running jobs hold, and what it has bound itself of others.
    pub(super) fn gang_frame(&self, now: Moment, epoch: f64) -> GangFrame {
        let unknown = |job: &Job, seat: &Seat| {
            let own = matches!(seat.stands, Stands::Placed(_)) && seat.chosen.is_none();
            job.has_ended() || !job.is_running() && !own
        };
        let ready = self.jobs.iter().filter(|(_, job)| job.is_ready());
        let jobs = ready.map(|(id, job)| job.as_gang(id, epoch)).collect();
        GangFrame { t: now.seconds(), nodes: self.nodes(unknown), jobs }
    }

    /// The machines, without the room that such tasks hold.
    fn nodes(&self, hold: impl Fn(&Job, &Seat) -> bool) -> Vec<Node> {
        let mut rooms: BTreeMap<&str, Amount> =
            self.machines.iter().map(|(name, machine)| (name.as_str(), machine.room)).collect();
        for job in self.jobs.values() {
            for seat in job.seats.iter().filter(|seat| hold(job, seat)) {
                if let Some(room) = seat.node().and_then(|node| rooms.get_mut(node)) {
                    *room = room.without(seat.need);
                }
            }
        }
        let node = |(name, room): (&str, Amount)| Node {
            name: name.into(),
            cpus: Some(room.cpu),
            memory: Some(room.memory),
            ..Node::default()
        };
        rooms.into_iter().map(node).collect()
    }
}

/// What machines are called here, by their ids.
struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    fn new(members: &'a [Member]) -> Self {
        Self(members.iter().map(|member| (member.id.as_str(), member.name.as_str())).collect())
    }

    /// The name of the machine with an id: the id itself, where no machine has it any more.
    fn of(&self, id: &str) -> String {
        self.0.get(id).copied().unwrap_or(id).to_owned()
    }
}

/// How the task of a service stands.
fn stands(spec: &ServiceSpec, tasks: &[&Task], names: &Names<'_>) -> Stands {
    let replicas = spec.mode.as_ref().and_then(|mode| mode.replicated.as_ref());
    let wanted = replicas.and_then(|replicated| replicated.replicas).unwrap_or(1) > 0;
    let alive = tasks.iter().find(|task| !task_is_over(task));
    // Of several attempts the last one counts, and none of a place that was taken back.
    let ended = tasks.iter().filter(|task| task.desired_state != Some(TaskState::REMOVE));
    let last = ended.max_by_key(|task| task.created_at.as_deref());
    let place = placed(spec).filter(|_| wanted).map(|id| names.of(id));
    match (place, alive, last) {
        (Some(place), Some(_), _) | (Some(place), None, None) => Stands::Placed(place),
        (Some(place), None, Some(last)) => Stands::Over(place, bad_end(last)),
        (None, Some(task), _) => match task.node_id.as_deref() {
            Some(node) => Stands::Leaving(names.of(node)),
            None => Stands::Free,
        },
        (None, None, _) => Stands::Free,
    }
}

/// Whether a task has come to its end, and the engine has done with it: one that failed is wanted until
/// there is another one in its place.
fn task_is_over(task: &Task) -> bool {
    let state = task.status.as_ref().and_then(|status| status.state);
    state.is_some_and(is_over) && task.desired_state != Some(TaskState::RUNNING)
}

/// Why a task has failed, if it has.
fn bad_end(task: &Task) -> Option<String> {
    let status = task.status.clone().unwrap_or_default();
    let state = status.state.filter(|state| *state != TaskState::COMPLETE)?;
    let said = status.err.or(status.message).unwrap_or_default();
    Some(format!("{state}: {said}"))
}

#[cfg(test)]
mod tests;
