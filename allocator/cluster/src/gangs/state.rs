//! Docker's state of distributed jobs and of free resources, as frames for policies. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bollard::models::{Service, ServiceSpec, Task, TaskState};
use paceline_api::stamp;
use paceline_policy::cluster::gangs::GangFrame;
use paceline_policy::cluster::{Role, Task as TaskOfFrame, TaskFrame};
use paceline_policy::frame::Node;
use paceline_policy::{JobId, Moment};

use super::job::{Amount, GangTask, Job, PlacementState};
use super::spec::TaskIdentity;
use crate::engine::{by_service, is_over, placed};
use crate::member::Member;

/// The machines and distributed jobs at one moment.
#[derive(Debug, Default)]
pub struct SwarmState {
    /// Machines that take tasks, by name, with the resources that other services leave free.
    pub machines: BTreeMap<String, Machine>,
    /// Distributed jobs by name.
    pub jobs: BTreeMap<JobId, Job>,
}

/// A machine that takes tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its id in the Swarm.
    pub id: String,
    room: Amount,
}

impl SwarmState {
    /// Reads Docker's lists. Machines have the names of `members`.
    pub fn new(members: &[Member], services: &[Service], tasks: &[Task]) -> Self {
        let of_service = by_service(tasks);
        let names = Names::new(members);
        let mut state = Self::default();
        let mut for_gangs: BTreeSet<&str> = BTreeSet::new();
        for service in services {
            let Some(id) = service.id.as_deref() else { continue };
            let tasks = of_service.get(id).map_or(&[][..], Vec::as_slice);
            if state.add(service, tasks, &names).is_some() {
                for_gangs.insert(id);
            }
        }
        for job in state.jobs.values_mut() {
            job.tasks.sort_by_key(|task| (task.role == Role::Worker, task.index));
        }
        for member in members.iter().filter(|member| member.takes_tasks && member.trouble.is_none())
        {
            let room = Amount { cpu: member.cpus, memory: member.memory };
            let machine = Machine { id: member.id.clone(), room };
            state.machines.insert(member.name.clone(), machine);
        }
        let others = tasks.iter().filter(|task| {
            let of_gang = task.service_id.as_deref().is_some_and(|id| for_gangs.contains(id));
            !of_gang && !task_is_over(task)
        });
        for task in others {
            let name = task.node_id.as_deref().map(|id| names.name_of(id));
            let Some(machine) = name.and_then(|name| state.machines.get_mut(&name)) else {
                continue;
            };
            let resources = task.spec.as_ref().and_then(|spec| spec.resources.as_ref());
            let need =
                Amount::reserved(resources.and_then(|resources| resources.reservations.as_ref()));
            machine.room = machine.room.without(need);
        }
        state
    }

    /// Adds a service if it is a task of a distributed job.
    fn add(&mut self, service: &Service, tasks: &[&Task], names: &Names<'_>) -> Option<()> {
        let spec = service.spec.as_ref()?;
        let labels = spec.labels.as_ref()?;
        let identity = TaskIdentity::read(|label| labels.get(label).map(String::as_str))?;
        let submitted = service.created_at.as_deref().and_then(stamp::parse);
        let id = JobId::new(identity.job.as_str()).ok()?;
        let job = self.jobs.entry(id).or_insert_with(|| Job::new(&identity));
        job.submitted = job.submitted.min(submitted.unwrap_or(f64::INFINITY));
        let resources = spec.task_template.as_ref().and_then(|task| task.resources.as_ref());
        let reserved = resources.and_then(|resources| resources.reservations.as_ref());
        job.tasks.push(GangTask {
            service: service.id.clone()?,
            name: spec.name.clone()?,
            role: identity.role,
            index: identity.index,
            chosen: identity.node,
            need: Amount::reserved(reserved),
            placement: placement_state(spec, tasks, names),
        });
        Some(())
    }

    /// The frame for a policy of tasks. Tasks of ended jobs are left out, but hold resources
    /// until they have left.
    pub(super) fn task_frame(&self, now: Moment) -> TaskFrame {
        let ended = |job: &Job, _: &GangTask| job.has_ended();
        let going = self.jobs.iter().filter(|(_, job)| job.is_ready() && !job.has_ended());
        let tasks = going.flat_map(|(id, job)| {
            job.tasks.iter().filter_map(move |task| {
                if matches!(task.placement, PlacementState::Over(..)) {
                    return None;
                }
                Some(TaskOfFrame {
                    id: JobId::new(task.name.clone()).ok()?,
                    job: id.clone(),
                    role: task.role,
                    cpu: Some(task.need.cpu),
                    memory: Some(task.need.memory),
                    node: task.node().map(str::to_owned),
                })
            })
        });
        TaskFrame { t: now.seconds(), nodes: self.nodes(ended), tasks: tasks.collect() }
    }

    /// The frame for a policy of whole jobs. `epoch` is the start of the run, in Unix seconds.
    ///
    /// Such a policy itself subtracts the resources of running jobs, and of tasks that it has
    /// placed.
    pub(super) fn gang_frame(&self, now: Moment, epoch: f64) -> GangFrame {
        let unknown = |job: &Job, task: &GangTask| {
            let own = matches!(task.placement, PlacementState::Placed(_)) && task.chosen.is_none();
            job.has_ended() || !job.is_running() && !own
        };
        let ready = self.jobs.iter().filter(|(_, job)| job.is_ready());
        let jobs = ready.map(|(id, job)| job.as_gang(id, epoch)).collect();
        GangFrame { t: now.seconds(), nodes: self.nodes(unknown), jobs }
    }

    /// The machines, without the resources of the tasks that `hold` selects.
    fn nodes(&self, hold: impl Fn(&Job, &GangTask) -> bool) -> Vec<Node> {
        let mut rooms: BTreeMap<&str, Amount> =
            self.machines.iter().map(|(name, machine)| (name.as_str(), machine.room)).collect();
        for job in self.jobs.values() {
            for task in job.tasks.iter().filter(|task| hold(job, task)) {
                if let Some(room) = task.node().and_then(|node| rooms.get_mut(node)) {
                    *room = room.without(task.need);
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

/// The names of machines by their ids.
struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    fn new(members: &'a [Member]) -> Self {
        Self(members.iter().map(|member| (member.id.as_str(), member.name.as_str())).collect())
    }

    /// The name of the machine with an id, or the id if the machine is gone.
    fn name_of(&self, id: &str) -> String {
        self.0.get(id).copied().unwrap_or(id).to_owned()
    }
}

/// Whether and where the task of a service is placed.
fn placement_state(spec: &ServiceSpec, tasks: &[&Task], names: &Names<'_>) -> PlacementState {
    let replicas = spec.mode.as_ref().and_then(|mode| mode.replicated.as_ref());
    let wanted = replicas.and_then(|replicated| replicated.replicas).unwrap_or(1) > 0;
    let alive = tasks.iter().find(|task| !task_is_over(task));
    // Of several attempts the last one counts. Attempts on a withdrawn place are ignored.
    let ended = tasks.iter().filter(|task| task.desired_state != Some(TaskState::REMOVE));
    let last = ended.max_by_key(|task| task.created_at.as_deref());
    let place = placed(spec).filter(|_| wanted).map(|id| names.name_of(id));
    match (place, alive, last) {
        (Some(place), Some(_), _) | (Some(place), None, None) => PlacementState::Placed(place),
        (Some(place), None, Some(last)) => PlacementState::Over(place, bad_end(last)),
        (None, Some(task), _) => match task.node_id.as_deref() {
            Some(node) => PlacementState::Leaving(names.name_of(node)),
            None => PlacementState::Free,
        },
        (None, None, _) => PlacementState::Free,
    }
}

/// Whether a task has ended for good. A failed task stays desired until Docker replaces it.
fn task_is_over(task: &Task) -> bool {
    let state = task.status.as_ref().and_then(|status| status.state);
    state.is_some_and(is_over) && task.desired_state != Some(TaskState::RUNNING)
}

/// Why a task failed, if it did.
fn bad_end(task: &Task) -> Option<String> {
    let status = task.status.clone().unwrap_or_default();
    let state = status.state.filter(|state| *state != TaskState::COMPLETE)?;
    let said = status.err.or(status.message).unwrap_or_default();
    Some(format!("{state}: {said}"))
}

#[cfg(test)]
mod tests;
