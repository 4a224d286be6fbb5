//! DLTAP: parameter servers go where the workers of their job are.
//!
//! Source: Qiao, Li, Wu: "DLTAP: A Network-efficient Scheduling Method for Distributed Deep
//! Learning Workload in Containerized Cluster Environment", ITM Web of Conferences 12, 2017, Eq. 1
//! to 3 and Algorithm 1. Every worker exchanges gradients with every parameter server (ps), so a ps
//! beside workers saves the network their traffic. Workers are placed by the scheduler's default
//! score (Eq. 1), here what stays free of CPU and memory; a ps by that score plus a weight times
//! the share of its job's workers on the node (Eq. 2 and 3).
//!
//! With its gaps filled, the paper has one meaning, so both variants are the same: the weight is 10
//! (A1); both terms are of the scale 0 to 100 (A2); `score` is their sum (A3); the workers of a
//! job are bound together, and its ps after them (A4); all workers of a job are counted, those that
//! are to run too (A5, A6); ties go to the node with fewer ps of the job, then by name (A7).

mod capacity;

use std::collections::BTreeMap;

use crate::cluster::{Bound, Pending, Placement, Role, Task, TaskFrame, TaskPolicy};
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::reason::dltap::{Near, Obstacle, Score};
use crate::unit::JobId;
use capacity::{Amount, FreeCapacity, Host};

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::new("weight", 10.0, "-", "of a job's workers on a node against free capacity")];

/// The policy. It has no state: a frame contains all that it needs.
#[derive(Debug)]
pub struct Dltap {
    weight: f64,
}

/// The tasks of one job, each list in the order of ids.
#[derive(Debug, Default)]
struct Job<'a> {
    workers: Vec<&'a Task>,
    ps: Vec<&'a Task>,
}

/// The number of tasks of the current job on a node.
#[derive(Clone, Copy, Debug, Default)]
struct NodeTasks {
    workers: usize,
    ps: usize,
}

/// A node that fits a task.
struct Offer {
    /// The node's index in the list.
    at: usize,
    /// Its score to nine decimals.
    rounded: f64,
    /// The number of ps of the job on it.
    ps: usize,
}

impl Offer {
    /// Whether a task goes here rather than to `other`, whose name comes first (A7).
    fn beats(&self, other: &Self) -> bool {
        self.rounded > other.rounded || (self.rounded >= other.rounded && self.ps < other.ps)
    }
}

impl Dltap {
    /// Its name.
    pub const NAME: &'static str = "dltap";

    /// Checks the parameters: `weight` (10), of the workers on a node against what it has free.
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let weight = params.at_least("weight", 0.0)?;
        Ok(Self { weight })
    }

    /// Places the unbound tasks of one job, workers first (A4).
    fn bind<'a>(&self, job: &Job<'a>, room: &mut FreeCapacity<'a>, answer: &mut Placement) {
        let unbound = |tasks: &[&'a Task]| -> Vec<&'a Task> {
            tasks.iter().filter(|task| task.node.is_none()).copied().collect()
        };
        let (workers, ps) = (unbound(&job.workers), unbound(&job.ps));
        if workers.is_empty() && ps.is_empty() {
            return;
        }
        let before = room.clone();
        let mut current = CurrentJob::new(job, room);
        let mut place = Vec::new();
        for worker in &workers {
            let Some(bound) = self.place(worker, &mut current, room) else {
                answer.pending.extend(waiting(worker, &workers, &ps, room));
                // The capacity that this job would have taken is free for the next one.
                *room = before;
                return;
            };
            place.push(bound);
        }
        answer.place.append(&mut place);
        for task in ps {
            if let Some(bound) = self.place(task, &mut current, room) {
                answer.place.push(bound);
            } else {
                let why = no_room(task, room);
                answer.pending.push(Pending { task: task.id.clone(), why });
            }
        }
    }

    /// Algorithm 1 for one task: binds it to the best node on which it fits.
    fn place(
        &self,
        task: &Task,
        current: &mut CurrentJob,
        room: &mut FreeCapacity<'_>,
    ) -> Option<Bound> {
        let need = Amount::for_task(task);
        let score = |host: &Host<'_>, node_tasks: &NodeTasks| {
            let Amount { cpu, memory } = host.free_after(need);
            let near = (task.role == Role::Ps).then_some(Near {
                weight: self.weight,
                here: node_tasks.workers,
                workers: current.workers,
            });
            Score { cpu, memory, near }
        };
        let offers = room.0.iter().zip(&current.node_tasks).enumerate();
        let offers =
            offers.filter(|(_, (host, _))| host.fits(need)).map(|(at, (host, node_tasks))| Offer {
                at,
                rounded: score(host, node_tasks).rounded(),
                ps: node_tasks.ps,
            });
        let best = offers.reduce(|best, next| if next.beats(&best) { next } else { best })?;
        let score = score(room.0.get(best.at)?, current.node_tasks.get(best.at)?);
        current.node_tasks.get_mut(best.at)?.add(task);
        let host = room.0.get_mut(best.at)?;
        host.take(need);
        Some(Bound {
            task: task.id.clone(),
            node: host.name.to_owned(),
            score: score.total(),
            why: score,
        })
    }
}

/// The current job.
struct CurrentJob {
    /// All its workers, on any node (A6).
    workers: usize,
    /// Its tasks on each of the listed nodes.
    node_tasks: Vec<NodeTasks>,
}

impl CurrentJob {
    fn new(job: &Job<'_>, room: &FreeCapacity<'_>) -> Self {
        let mut node_tasks = vec![NodeTasks::default(); room.0.len()];
        for task in job.workers.iter().chain(&job.ps) {
            let at = task.node.as_deref().and_then(|node| room.find(node));
            if let Some(node_tasks) = at.and_then(|at| node_tasks.get_mut(at)) {
                node_tasks.add(task);
            }
        }
        Self { workers: job.workers.len(), node_tasks }
    }
}

impl NodeTasks {
    fn add(&mut self, task: &Task) {
        match task.role {
            Role::Worker => self.workers += 1,
            Role::Ps => self.ps += 1,
        }
    }
}

/// Why a task fits on no node.
fn no_room(task: &Task, room: &FreeCapacity<'_>) -> Obstacle {
    let (need, most) = (Amount::for_task(task), room.most_free());
    Obstacle::NoRoom {
        cpu: need.cpu,
        memory: need.memory,
        most_cpu: most.cpu,
        most_memory: most.memory,
    }
}

/// The tasks of a job that waits because one worker fits on no node.
fn waiting(
    missing: &Task,
    workers: &[&Task],
    ps: &[&Task],
    room: &FreeCapacity<'_>,
) -> Vec<Pending> {
    let pending = |task: &&Task| {
        let gang = || Obstacle::Gang { worker: missing.id.clone() };
        let why = if task.id == missing.id { no_room(missing, room) } else { gang() };
        Pending { task: task.id.clone(), why }
    };
    workers.iter().chain(ps).map(pending).collect()
}

impl TaskPolicy for Dltap {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn decide(&mut self, frame: &TaskFrame) -> Placement {
        let mut tasks: Vec<&Task> = frame.tasks.iter().collect();
        tasks.sort_by_key(|task| &task.id);
        let mut room = FreeCapacity::new(&frame.nodes, &tasks);
        let mut jobs: BTreeMap<&JobId, Job<'_>> = BTreeMap::new();
        for task in tasks {
            let job = jobs.entry(&task.job).or_default();
            match task.role {
                Role::Worker => job.workers.push(task),
                Role::Ps => job.ps.push(task),
            }
        }
        let mut answer =
            Placement { t: frame.t, policy: Self::NAME, place: Vec::new(), pending: Vec::new() };
        for job in jobs.values() {
            self.bind(job, &mut room, &mut answer);
        }
        answer
    }
}

#[cfg(test)]
mod tests;
