//! A simulated Swarm that carries out orders immediately.

use bollard::models::{Service, Task, TaskState, TaskStatus};

use super::file::Gang;
use super::orders::{Action, Order};
use super::spec;
use super::state::SwarmState;
use crate::engine::placed;
use crate::member::Member;

#[derive(Debug, Default)]
pub(super) struct FakeSwarm {
    pub(super) members: Vec<Member>,
    pub(super) services: Vec<Service>,
    pub(super) tasks: Vec<Task>,
}

impl FakeSwarm {
    /// A Swarm of machines with these names and CPUs.
    pub(super) fn new(machines: &[(&str, f64)]) -> Self {
        let member = |(name, cpus): &(&str, f64)| Member {
            name: (*name).to_owned(),
            id: format!("id-of-{name}"),
            address: None,
            cpus: *cpus,
            memory: 1e9,
            trouble: None,
            takes_tasks: true,
        };
        Self { members: machines.iter().map(member).collect(), ..Self::default() }
    }

    /// Submits a job, `second` seconds after the start of 2026.
    pub(super) fn submit(&mut self, text: &str, second: u32) {
        let gang = Gang::parse(text).unwrap();
        for spec in spec::services(&gang, "net").unwrap() {
            self.services.push(Service {
                id: spec.name.clone().map(|name| format!("id-of-{name}")),
                created_at: Some(format!("2026-01-01T00:00:{second:02}Z")),
                spec: Some(spec),
                ..Service::default()
            });
        }
    }

    pub(super) fn state(&self) -> SwarmState {
        SwarmState::new(&self.members, &self.services, &self.tasks)
    }

    /// Carries out the orders. A withdrawn task disappears immediately.
    pub(super) fn obey(&mut self, orders: &[Order]) {
        for Order { service: id, action, .. } in orders {
            let service =
                self.services.iter_mut().find(|service| service.id.as_ref() == Some(id)).unwrap();
            let spec = service.spec.as_mut().unwrap();
            match action {
                Action::Place(_, node) => {
                    spec::place(spec, node);
                    let node = placed(spec).map(str::to_owned);
                    self.tasks.push(task(id, node, TaskState::RUNNING));
                }
                Action::Withdraw(_) => {
                    spec::withdraw(spec);
                    self.tasks.retain(|task| task.service_id.as_ref() != Some(id));
                }
            }
        }
    }

    /// Ends a task.
    pub(super) fn ends(&mut self, name: &str, state: TaskState) {
        let id = format!("id-of-{name}");
        let mut of = self.tasks.iter_mut().filter(|task| task.service_id.as_ref() == Some(&id));
        of.next().unwrap().status = Some(TaskStatus {
            state: Some(state),
            err: Some("exit 1".to_owned()),
            ..TaskStatus::default()
        });
    }

    /// The placed tasks as `task@machine`.
    pub(super) fn places(&self) -> Vec<String> {
        let machine = |id: &str| id.trim_start_matches("id-of-").to_owned();
        let place = |task: &Task| {
            let (name, node) = (task.service_id.as_deref()?, task.node_id.as_deref()?);
            Some(format!("{}@{}", machine(name), machine(node)))
        };
        let mut places: Vec<String> = self.tasks.iter().filter_map(place).collect();
        places.sort();
        places
    }
}

pub(super) fn task(service: &str, node: Option<String>, state: TaskState) -> Task {
    Task {
        service_id: Some(service.to_owned()),
        node_id: node,
        status: Some(TaskStatus { state: Some(state), ..TaskStatus::default() }),
        ..Task::default()
    }
}

/// A job file with `servers` parameter servers and `min` to `max` workers, each of one CPU.
pub(super) fn job(name: &str, servers: u32, min: u32, max: u32) -> String {
    format!(
        "name = '{name}'\nimage = 'i'\n[ps]\ncount = {servers}\ncpus = 1\n\
         [worker]\nmin = {min}\nmax = {max}\ncpus = 1\n"
    )
}
