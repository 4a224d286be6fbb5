//! The best that any policy could reach, objective by objective.
//!
//! A policy is judged by its distance to these. Each is a bound that holds whatever a policy does,
//! and is exact where its documentation says so; what a policy does not know (the work that is
//! left) the bounds do. They hold for nodes without contention: contention only makes runs slower.

mod busy_time;
mod makespan;
mod srpt;
mod targets;

use paceline_policy::unit::count;

use crate::scenario::{Job, Node};

pub use busy_time::busy_time;
pub use makespan::makespan;
pub use srpt::srpt;
pub use targets::targets_met;

/// What the bounds need to know of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// When it arrives.
    pub release: f64,
    /// Its work, as seconds of a whole node.
    pub work: f64,
    /// The most nodes that it can use at once: at most 1.
    pub cap: f64,
}

/// The bounds of a workload; `None` where it has no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Bounds {
    /// No mean completion time is below this.
    pub completion_mean: Option<f64>,
    /// No makespan is.
    pub makespan: Option<f64>,
    /// No more jobs can keep the targets of their batches at once.
    pub met: Option<f64>,
}

impl Bounds {
    /// Of jobs on nodes.
    pub fn of(jobs: &[Job], nodes: &[Node]) -> Self {
        let tasks: Vec<Task> = jobs.iter().map(Task::of).collect();
        let ends = !tasks.is_empty() && tasks.iter().all(|task| task.work.is_finite());
        let machines = count(nodes.len());
        Self {
            completion_mean: ends.then(|| mean_completion(&tasks, machines)),
            makespan: ends.then(|| makespan(&tasks, machines)),
            met: targets_met(jobs, machines),
        }
    }

    /// The bound of a metric of this name.
    pub fn get(&self, metric: &str) -> Option<f64> {
        match metric {
            "completion_mean" => self.completion_mean,
            "makespan" => self.makespan,
            "met" => self.met,
            _ => None,
        }
    }
}

impl Task {
    fn of(job: &Job) -> Self {
        // A batch's fixed part costs a share of its own: the fastest that the job can be is alone.
        let cap = if job.fixed > 0.0 { job.work / job.alone() } else { job.parallel };
        // Where it may be ended at its objective, that much work is enough.
        let enough = job.work_to(job.targets.objective).filter(|_| job.may_terminate);
        Self { release: job.arrive, work: enough.unwrap_or(job.work), cap }
    }

    /// How long it takes with as much as it can use.
    fn alone(&self) -> f64 {
        self.work / self.cap
    }
}

/// The largest of three bounds of the mean completion time on `machines` nodes: no job is quicker
/// than alone; all nodes as one quick one, where the job with the least work left goes first, is
/// quicker than they are; and the mean of busy times. On one node that every job can fill, the
/// second is exact: it is a schedule, and none is better.
///
/// The second: Schrage, "A proof of the optimality of the shortest remaining processing time
/// discipline", Operations Research 16(3), 1968. Whatever runs on the nodes could run on the quick
/// one, which can do all that they do at once.
pub fn mean_completion(tasks: &[Task], machines: f64) -> f64 {
    let alone = tasks.iter().map(Task::alone).sum::<f64>() / count(tasks.len());
    let exact = machines <= 1.0 && tasks.iter().all(|task| task.cap >= 1.0);
    let pooled = srpt(tasks, machines);
    if exact { pooled } else { alone.max(pooled).max(busy_time(tasks, machines)) }
}

#[cfg(test)]
mod tests;
