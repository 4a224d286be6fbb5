//! One distributed job as it stands. Pure.

use std::collections::BTreeMap;

use bollard::models::ResourceObject;
use paceline_policy::JobId;
use paceline_policy::cluster::Role;
use paceline_policy::cluster::gangs::{Gang, Layout, Servers, State, Workers};
use paceline_policy::unit::counter;

use super::spec::Ticket;
use crate::cluster::engine::NANO;
use crate::live::snapshot::{GangState, GangView, PlaceView, TaskCountsView};

/// A distributed job.
#[derive(Debug)]
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
    pub(super) need: Amount,
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

/// Cores and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Job {
    /// The job that a ticket is of, without tasks as yet.
    pub(super) fn new(ticket: &Ticket) -> Self {
        Self {
            submitted: f64::INFINITY,
            servers: ticket.servers,
            min: ticket.min,
            max: ticket.max,
            seats: Vec::new(),
        }
    }

    /// Whether all its services are there: one that is being submitted has but some.
    pub(super) fn is_whole(&self) -> bool {
        let count = |role| self.of(role).count();
        let (servers, workers) = (count(Role::Ps), count(Role::Worker));
        let is = |count: usize, said: u32| u32::try_from(count).is_ok_and(|count| count == said);
        is(servers, self.servers) && is(workers, self.max)
    }

    /// Whether a policy may place what is left of it: tasks whose machine its owner has chosen are
    /// there.
    pub(super) fn is_ready(&self) -> bool {
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

    /// The job as a policy of whole jobs sees it. `epoch` is when time began, in Unix seconds.
    pub(super) fn as_gang(&self, id: &JobId, epoch: f64) -> Gang {
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
    pub(super) fn node(&self) -> Option<&str> {
        match &self.stands {
            Stands::Placed(node) | Stands::Leaving(node) => Some(node),
            Stands::Free | Stands::Over(..) => None,
        }
    }
}

impl Amount {
    /// What is left of it.
    pub(super) fn without(self, need: Self) -> Self {
        Self { cpu: (self.cpu - need.cpu).max(0.0), memory: (self.memory - need.memory).max(0.0) }
    }

    /// What a service reserves.
    pub(super) fn of(resources: Option<&ResourceObject>) -> Self {
        let amount =
            |of: Option<i64>| counter(of.and_then(|of| u64::try_from(of).ok()).unwrap_or_default());
        resources.map_or_else(Self::default, |resources| Self {
            cpu: amount(resources.nano_cpus) / NANO,
            memory: amount(resources.memory_bytes),
        })
    }
}
