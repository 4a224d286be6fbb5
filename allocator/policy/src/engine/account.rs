use paceline_wire::{Direction, Targets};

use super::Engine;
use crate::limiter::{Guard, InForce};
use crate::unit::{JobId, Share};

/// How one job stands, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What the policy chose last: 1 at first.
    pub chosen: Share,
    /// What is in force.
    pub in_force: InForce,
    /// The share that it is held at by an order.
    pub pinned: Option<Share>,
    /// The targets in force.
    pub targets: Targets,
    /// Which way its loss goes.
    pub direction: Direction,
    /// The guards that are on for it.
    pub guards: Vec<Guard>,
}

impl Engine {
    /// How a job stands; `None` if there is none of that name.
    pub fn account(&self, id: &JobId) -> Option<Account> {
        let job = self.jobs.get(id)?;
        Some(Account {
            chosen: job.chosen,
            in_force: job.in_force,
            pinned: job.pinned,
            targets: job.targets(),
            direction: job.direction(),
            guards: self.limiter.guards(job.switches, job.spec.max_slowdown),
        })
    }
}
