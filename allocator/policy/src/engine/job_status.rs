use paceline_wire::{Direction, Targets};

use super::Engine;
use crate::limiter::{Guard, InForce};
use crate::unit::{JobId, Share};

/// The state of one job, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStatus {
    /// The policy's last choice; 1 at first.
    pub chosen: Share,
    /// The settings in force.
    pub in_force: InForce,
    /// The share at which a command holds it.
    pub pinned: Option<Share>,
    /// The targets in force.
    pub targets: Targets,
    /// The direction of its loss.
    pub direction: Direction,
    /// The guards that are on for it.
    pub guards: Vec<Guard>,
}

impl Engine {
    /// The state of a job; `None` if the job is unknown.
    pub fn status(&self, id: &JobId) -> Option<JobStatus> {
        let job = self.jobs.get(id)?;
        Some(JobStatus {
            chosen: job.chosen,
            in_force: job.in_force,
            pinned: job.pinned,
            targets: job.targets(),
            direction: job.direction(),
            guards: self.limiter.guards(job.switches, job.spec.max_slowdown),
        })
    }
}
