//! What an engine says of distributed jobs and of the room for them, as frames for policies. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bollard::models::{ResourceObject, Service, ServiceSpec, Task, TaskState};
use paceline_policy::cluster::gangs::{Gang, GangFrame, Layout, Servers, State, Workers};
use paceline_policy::cluster::{Role, Task as TaskOfFrame, TaskFrame};
use paceline_policy::frame::Node;
use paceline_policy::unit::counter;
use paceline_policy::{JobId, Moment};

use super::spec::Ticket;
use crate::cluster::engine::{NANO, is_over, placed};
use crate::cluster::swarm::Member;
use crate::live::snapshot::{GangState, GangView, PlaceView, TaskCountsView};
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

/// Cores and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    cpu: f64,
    memory: f64,
}

/// A distributed job.
#[derive(Debug, Default)]
pub struct Job {
    /// When it was submitted, in Unix seconds.
    pub submitted: f64,
    /// Its tasks, by part and number.
    pub seats: Vec<Seat>,
    servers: u32,
    min: u32,
    max: u32,
}

/// One task of a job, and its service.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The service's id.
    pub service: String,
    /// What it is called.
    pub name: String,
    /// Its part in the job.
    pub role: Role,
    /// Its number among those of its part.
    pub index: u32,
    /// The machine that its owner has chosen.
    pub chosen: Option<String>,
    need: Amount,
    /// How it stands.
    pub stands: Stands,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It waits for a place.
    Free,
    /// It is placed on this machine, and runs there, or will as soon as the engine can.
    Placed(String),
    /// It was placed, was taken back, and has not left this machine yet.
    Leaving(String),
    /// It was placed on this machine, and has come to its end: for a bad one there is a reason.
    Over(String, Option<String>),
}

impl Seen {
    /// What the engine says. Machines have the names that they have everywhere here.
    pub fn of(members: &[Member], services: &[Service], tasks: &[Task]) -> Self {
        let mut of_service: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in tasks {
            if let Some(service) = &task.service_id {
                of_service.entry(service).or_default().push(task);
            }
        }
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
        let job = self.jobs.entry(JobId::new(ticket.job).ok()?).or_insert_with(|| Job {
            submitted: f64::INFINITY,
            servers: ticket.servers,
            min: ticket.min,
            max: ticket.max,
            ..Job::default()
        });
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

impl Job {
    /// Whether all its services are there: one that is being submitted has but some.
    pub(super) fn is_whole(&self) -> bool {
        let count = |role| self.of(role).count();
        let (servers, workers) = (count(Role::Ps), count(Role::Worker));
        let is = |count: usize, said: u32| u32::try_from(count).is_ok_and(|count| count == said);
        is(servers, self.servers) && is(workers, self.max)
    }

    /// Whether a policy may place what is left of it: tasks whose machine its owner has chosen are
    /// there.
    fn is_ready(&self) -> bool {
        let is_early = |seat: &Seat| seat.chosen.is_some() && seat.stands == Stands::Free;
        self.is_whole() && !self.seats.iter().any(is_early)
    }

    /// Its tasks of one part.
    pub(super) fn of(&self, role: Role) -> impl DoubleEndedIterator<Item = &Seat> {
        self.seats.iter().filter(move |seat| seat.role == role)
    }

    /// Whether it is over: of its workers, or of its parameter servers, all that were placed are.
    pub(super) fn has_ended(&self) -> bool {
        let all_over = |role| {
            let mut placed = self.of(role).filter(|seat| seat.is_placed()).peekable();
            placed.peek().is_some() && placed.all(|seat| matches!(seat.stands, Stands::Over(..)))
        };
        all_over(Role::Worker) || all_over(Role::Ps)
    }

    /// Whether all that it needs is placed.
    pub(super) fn is_running(&self) -> bool {
        let placed = |role| self.of(role).filter(|seat| seat.is_placed()).count();
        let is_least =
            |count: usize, least: u32| u32::try_from(count).is_ok_and(|count| count >= least);
        is_least(placed(Role::Ps), self.servers) && is_least(placed(Role::Worker), self.min)
    }

    fn state(&self) -> State {
        if self.has_ended() {
            State::Finished
        } else if self.is_running() {
            State::Running
        } else {
            State::Waiting
        }
    }

    fn as_gang(&self, id: &JobId, epoch: f64) -> Gang {
        let need = |role| self.of(role).next().map(|seat| seat.need).unwrap_or_default();
        let (server, worker) = (need(Role::Ps), need(Role::Worker));
        let state = self.state();
        let mut placement = Layout::default();
        for seat in self.seats.iter().filter(|_| state == State::Running) {
            let Some(node) = seat.node() else { continue };
            let counts = match seat.role {
                Role::Ps => &mut placement.ps,
                Role::Worker => &mut placement.workers,
            };
            *counts.entry(node.to_owned()).or_default() += 1;
        }
        Gang {
            id: id.clone(),
            submitted: self.submitted.is_finite().then_some(self.submitted - epoch),
            state,
            ps: Servers { count: self.servers, cpu: Some(server.cpu), memory: Some(server.memory) },
            worker: Workers {
                min: self.min,
                max: Some(self.max),
                cpu: Some(worker.cpu),
                memory: Some(worker.memory),
            },
            placement,
        }
    }

    /// The job as it is shown, and why it stands so where somebody has said.
    pub fn view(&self, id: &JobId, why: Option<String>) -> GangView {
        let counts = |role| {
            let of = |is: fn(&Seat) -> bool| {
                u32::try_from(self.of(role).filter(|seat| is(seat)).count()).unwrap_or(u32::MAX)
            };
            TaskCountsView {
                placed: of(|seat| matches!(seat.stands, Stands::Placed(_))),
                over: of(|seat| matches!(seat.stands, Stands::Over(..))),
                of: of(|_| true),
            }
        };
        let mut places: BTreeMap<String, PlaceView> = BTreeMap::new();
        for seat in &self.seats {
            let Some(node) = seat.node() else { continue };
            let place = places.entry(node.to_owned()).or_default();
            match seat.role {
                Role::Ps => place.ps += 1,
                Role::Worker => place.workers += 1,
            }
        }
        let failed = self.seats.iter().find_map(|seat| match &seat.stands {
            Stands::Over(_, Some(why)) => Some(format!("{}: {why}", seat.name)),
            Stands::Over(_, None) | Stands::Free | Stands::Placed(_) | Stands::Leaving(_) => None,
        });
        let state = match self.state() {
            _ if !self.is_whole() => GangState::Incomplete,
            State::Finished if failed.is_some() => GangState::Failed,
            State::Finished => GangState::Finished,
            State::Running => GangState::Running,
            State::Waiting => GangState::Waiting,
        };
        GangView {
            job: id.to_string(),
            state,
            submitted: self.submitted.is_finite().then_some(self.submitted),
            ps: counts(Role::Ps),
            workers: counts(Role::Worker),
            least: self.min,
            places,
            why,
            trouble: failed,
        }
    }
}

impl Seat {
    /// Whether it was given a place, and that was not taken back.
    fn is_placed(&self) -> bool {
        matches!(self.stands, Stands::Placed(_) | Stands::Over(..))
    }

    /// The machine whose room it holds.
    fn node(&self) -> Option<&str> {
        match &self.stands {
            Stands::Placed(node) | Stands::Leaving(node) => Some(node),
            Stands::Free | Stands::Over(..) => None,
        }
    }
}

impl Amount {
    fn without(self, need: Self) -> Self {
        Self { cpu: (self.cpu - need.cpu).max(0.0), memory: (self.memory - need.memory).max(0.0) }
    }

    fn of(resources: Option<&ResourceObject>) -> Self {
        let amount =
            |of: Option<i64>| counter(of.and_then(|of| u64::try_from(of).ok()).unwrap_or_default());
        resources.map_or_else(Self::default, |resources| Self {
            cpu: amount(resources.nano_cpus) / NANO,
            memory: amount(resources.memory_bytes),
        })
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
