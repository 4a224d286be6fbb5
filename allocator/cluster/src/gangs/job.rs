//! The current state of one distributed job. Pure.

use std::collections::BTreeMap;

use bollard::models::ResourceObject;
use paceline_api::live::snapshot::{GangState, GangView, PlaceView, TaskCountsView};
use paceline_policy::JobId;
use paceline_policy::cluster::Role;
use paceline_policy::cluster::gangs::{Gang, Layout, Servers, State, Workers};
use paceline_policy::unit::counter;

use super::spec::TaskIdentity;
use crate::engine::NANO;

/// A distributed job.
#[derive(Debug)]
pub struct Job {
    /// When it was submitted, in Unix seconds.
    pub submitted: f64,
    /// Its tasks, ordered by role and index.
    pub tasks: Vec<GangTask>,
    servers: u32,
    min: u32,
    max: u32,
}

/// One task of a job, and its service.
#[derive(Clone, Debug)]
pub struct GangTask {
    /// The service's id.
    pub service: String,
    /// The task's name.
    pub name: String,
    /// Its role in the job.
    pub role: Role,
    /// Its index among the tasks of its role, from 0.
    pub index: u32,
    /// The machine that the job's owner chose, if any.
    pub chosen: Option<String>,
    pub(super) need: Amount,
    /// Whether and where it is placed.
    pub placement: PlacementState,
}

/// Whether and where a task is placed. Strings are machine names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementState {
    /// It waits for a machine.
    Free,
    /// It is placed on this machine. It runs there, or Docker is starting it.
    Placed(String),
    /// It was withdrawn, and has not left this machine yet.
    Leaving(String),
    /// It ran on this machine and has ended, with the reason if it failed.
    Over(String, Option<String>),
}

/// CPUs and bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Job {
    /// The job that a task's labels describe, still without tasks.
    pub(super) fn new(identity: &TaskIdentity) -> Self {
        Self {
            submitted: f64::INFINITY,
            servers: identity.servers,
            min: identity.min,
            max: identity.max,
            tasks: Vec::new(),
        }
    }

    /// Whether all its services exist. During a submission only some of them do.
    pub(super) fn is_whole(&self) -> bool {
        let count = |role| self.with_role(role).count();
        let (servers, workers) = (count(Role::Ps), count(Role::Worker));
        let is = |count: usize, said: u32| u32::try_from(count).is_ok_and(|count| count == said);
        is(servers, self.servers) && is(workers, self.max)
    }

    /// Whether a policy may place the rest of it: all tasks whose machine its owner chose are
    /// placed.
    pub(super) fn is_ready(&self) -> bool {
        let is_early =
            |task: &GangTask| task.chosen.is_some() && task.placement == PlacementState::Free;
        self.is_whole() && !self.tasks.iter().any(is_early)
    }

    /// Its tasks of one role.
    pub(super) fn with_role(&self, role: Role) -> impl DoubleEndedIterator<Item = &GangTask> {
        self.tasks.iter().filter(move |task| task.role == role)
    }

    /// Whether it has ended: all its placed workers, or all its placed parameter servers, have.
    pub(super) fn has_ended(&self) -> bool {
        let all_over = |role| {
            let mut placed = self.with_role(role).filter(|task| task.is_placed()).peekable();
            placed.peek().is_some()
                && placed.all(|task| matches!(task.placement, PlacementState::Over(..)))
        };
        all_over(Role::Worker) || all_over(Role::Ps)
    }

    /// Whether its parameter servers and its smallest number of workers are placed.
    pub(super) fn is_running(&self) -> bool {
        let placed = |role| self.with_role(role).filter(|task| task.is_placed()).count();
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

    /// The job as a policy of whole jobs sees it. `epoch` is the start of the run, in Unix
    /// seconds.
    pub(super) fn as_gang(&self, id: &JobId, epoch: f64) -> Gang {
        let need = |role| self.with_role(role).next().map(|task| task.need).unwrap_or_default();
        let (server, worker) = (need(Role::Ps), need(Role::Worker));
        let state = self.state();
        let mut placement = Layout::default();
        for task in self.tasks.iter().filter(|_| state == State::Running) {
            let Some(node) = task.node() else { continue };
            let counts = match task.role {
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

    /// The job for display. `why` is the last reason that a decision gave, if any.
    pub fn view(&self, id: &JobId, why: Option<String>) -> GangView {
        let counts = |role| {
            let of = |is: fn(&GangTask) -> bool| {
                u32::try_from(self.with_role(role).filter(|task| is(task)).count())
                    .unwrap_or(u32::MAX)
            };
            TaskCountsView {
                placed: of(|task| matches!(task.placement, PlacementState::Placed(_))),
                over: of(|task| matches!(task.placement, PlacementState::Over(..))),
                of: of(|_| true),
            }
        };
        let mut places: BTreeMap<String, PlaceView> = BTreeMap::new();
        for task in &self.tasks {
            let Some(node) = task.node() else { continue };
            let place = places.entry(node.to_owned()).or_default();
            match task.role {
                Role::Ps => place.ps += 1,
                Role::Worker => place.workers += 1,
            }
        }
        let failed = self.tasks.iter().find_map(|task| match &task.placement {
            PlacementState::Over(_, Some(why)) => Some(format!("{}: {why}", task.name)),
            PlacementState::Over(_, None)
            | PlacementState::Free
            | PlacementState::Placed(_)
            | PlacementState::Leaving(_) => None,
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

impl GangTask {
    /// Whether it was placed and not withdrawn.
    fn is_placed(&self) -> bool {
        matches!(self.placement, PlacementState::Placed(_) | PlacementState::Over(..))
    }

    /// The machine whose resources it holds.
    pub(super) fn node(&self) -> Option<&str> {
        match &self.placement {
            PlacementState::Placed(node) | PlacementState::Leaving(node) => Some(node),
            PlacementState::Free | PlacementState::Over(..) => None,
        }
    }
}

impl Amount {
    /// The remainder after subtracting `need`, never below 0.
    pub(super) fn without(self, need: Self) -> Self {
        Self { cpu: (self.cpu - need.cpu).max(0.0), memory: (self.memory - need.memory).max(0.0) }
    }

    /// The amount that a service reserves.
    pub(super) fn reserved(resources: Option<&ResourceObject>) -> Self {
        let amount =
            |of: Option<i64>| counter(of.and_then(|of| u64::try_from(of).ok()).unwrap_or_default());
        resources.map_or_else(Self::default, |resources| Self {
            cpu: amount(resources.nano_cpus) / NANO,
            memory: amount(resources.memory_bytes),
        })
    }
}
