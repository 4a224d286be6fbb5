//! Bounds of the best values that any policy can reach, for each metric.
//!
//! Policies are judged by their distance from these bounds. Each bound holds for every policy, and
//! is exact where its documentation states that. Bounds know what a policy does not, such as the
//! remaining work. They ignore contention, and what [starts](crate::scenario::Start) take from
//! others. Both only make runs slower; with either of them no value counts as reached.
//!
//! The best value of each metric has two ends, each with its source. No policy can beat the one. A
//! schedule that knows the future reaches the other.

mod busy_time;
mod clairvoyant;
mod deadlines;
mod fairness;
mod flow;
mod gangs;
mod loss_area;
mod makespan;
mod pieces;
mod srpt;
mod targets;

use std::collections::BTreeMap;

use paceline_policy::unit::count;

use crate::scenario::{Gang, Job, Node};
use clairvoyant::{Order, Reached, schedule};
use pieces::Chain;

pub use busy_time::busy_time;
pub use fairness::{equal_shares, worst_fairness};
pub use gangs::fewest_crossing;
pub use makespan::makespan;
pub use srpt::srpt;
pub use targets::{least_distance, targets_met};

/// With more pieces of work than this, no schedule near the bounds is searched for.
const MAX_PIECES: usize = 5000;

/// What the bounds need to know of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// When it arrives, or at the earliest has started.
    pub release: f64,
    /// Its work, as seconds of a whole node.
    pub work: f64,
    /// The most nodes that it can use at once: at most 1.
    pub cap: f64,
}

/// The known range of the best value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bound {
    /// No policy is better than this.
    pub limit: f64,
    /// A value that a schedule with knowledge of the future reaches; equal to `limit` if the bound
    /// is exact. `None` if no schedule was searched for.
    pub reached: Option<f64>,
}

impl Bound {
    fn exact_if(limit: f64, exact: bool) -> Self {
        Self { limit, reached: exact.then_some(limit) }
    }
}

/// The bounds of a workload, by the names of the metrics.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Bounds(BTreeMap<&'static str, Bound>);

impl Bounds {
    /// The bounds of jobs on nodes, until a moment. `equal` is the result of [`equal_shares`].
    pub fn for_jobs(jobs: &[Job], equal: &[f64], nodes: &[Node], until: f64) -> Self {
        let rooms: Vec<f64> = nodes.iter().map(Node::room).collect();
        let machines = rooms.iter().sum();
        let mut bounds = Self::default();
        // For jobs that noise may end, the required work is unknown.
        if !jobs.iter().any(noise_may_end) {
            let tasks: Vec<Task> = jobs.iter().map(Task::for_job).collect();
            bounds = Self::of_tasks(&tasks, &rooms);
            if bounds.get("makespan").is_some() {
                let limit = worst_fairness(&tasks, equal, machines);
                let exact = deadlines::is_exact(&tasks, &rooms);
                bounds.add("fairness_worst", Some(Bound::exact_if(limit, exact)));
            }
            bounds.add("loss_area", area_under_loss(jobs, &rooms, until));
            bounds.add("acceptable_mean", time_to(jobs, Job::work_to_acceptable, &rooms));
            bounds.add("objective_mean", time_to(jobs, Job::work_to_objective, &rooms));
        }
        let met = targets_met(jobs, machines, until);
        let met = met.map(|met| Bound::exact_if(met, nodes.len() == 1));
        bounds.add("satisfied", met);
        bounds.add("met", met);
        let distance = least_distance(jobs, machines, until);
        bounds.add("distance", distance.map(|limit| Bound { limit, reached: None }));
        let starts = jobs.iter().any(|job| job.start.is_some());
        if starts {
            bounds.count_starts(jobs, until);
        }
        let mut contentions = nodes.iter().map(|node| node.contention);
        let own = jobs.iter().any(|job| job.contention.is_some_and(|own| own > 0.0));
        if starts || own || contentions.any(|contention| contention > 0.0) {
            bounds.forget_reached();
        }
        bounds
    }

    /// The bounds of distributed jobs on nodes.
    pub fn for_gangs(jobs: &[Gang], nodes: &[Node]) -> Self {
        let mut bounds = Self::of_tasks(&gangs::tasks(jobs, nodes), &[1.0]);
        // The cluster is not really one node.
        bounds.forget_reached();
        bounds
    }

    /// `rooms` are the shares of the nodes available to jobs.
    fn of_tasks(tasks: &[Task], rooms: &[f64]) -> Self {
        let mut bounds = Self::default();
        let machines = rooms.iter().sum();
        if !tasks.is_empty() && tasks.iter().all(|task| task.work.is_finite()) {
            let limit = makespan(tasks, machines);
            let exact = deadlines::is_exact(tasks, rooms);
            bounds.add("completion_mean", Some(completion(tasks, rooms)));
            bounds.add("makespan", Some(Bound::exact_if(limit, exact)));
        }
        bounds
    }

    fn add(&mut self, metric: &'static str, bound: Option<Bound>) {
        self.0.extend(bound.map(|bound| (metric, bound)));
    }

    /// Adds starts to means that count from releases, so that they count from arrivals as the
    /// metrics do.
    fn count_starts(&mut self, jobs: &[Job], until: f64) {
        let reaches = |job: &Job, work: Option<f64>| work.is_some() && job.work.is_finite();
        let all = mean_start(jobs, |_| true);
        // Areas are counted until the end of the run.
        let with_loss = jobs.iter().filter(|job| job.loss.is_some());
        let with_loss = with_loss.map(|job| job.start_seconds().min((until - job.arrive).max(0.0)));
        for (metric, seconds) in [
            ("completion_mean", all),
            ("acceptable_mean", mean_start(jobs, |job| reaches(job, job.work_to_acceptable()))),
            ("objective_mean", mean_start(jobs, |job| reaches(job, job.work_to_objective()))),
            ("loss_area", with_loss.sum::<f64>() / count(jobs.len())),
        ] {
            if let Some(bound) = self.0.get_mut(metric) {
                bound.limit += seconds;
            }
        }
    }

    fn forget_reached(&mut self) {
        for bound in self.0.values_mut() {
            bound.reached = None;
        }
    }

    /// The bound of the metric of this name.
    pub fn get(&self, metric: &str) -> Option<Bound> {
        self.0.get(metric).copied()
    }
}

/// The least mean length of the starts of some jobs.
fn mean_start(jobs: &[Job], which: impl Fn(&Job) -> bool) -> f64 {
    let starts: Vec<f64> = jobs.iter().filter(|job| which(job)).map(Job::start_seconds).collect();
    starts.iter().sum::<f64>() / count(starts.len())
}

/// Whether a job may be ended because its reports reach its objective before its loss curve does.
/// It has then done less work than the bounds assume.
fn noise_may_end(job: &Job) -> bool {
    job.noise > 0.0 && job.may_terminate && job.targets.objective.is_some()
}

/// Both ends of the least mean completion time.
fn completion(tasks: &[Task], rooms: &[f64]) -> Bound {
    let limit = mean_completion(tasks, rooms.iter().sum());
    let chains: Vec<Chain> = tasks.iter().map(Chain::whole).collect();
    let reach = |order| Some(reached(&chains, rooms, order, f64::INFINITY)?.completion);
    let reached = reach(Order::Work).zip(reach(Order::Time)).map(|(a, b)| a.min(b));
    Bound { limit, reached }
}

/// Both ends of the least mean time until a target is reached, over the jobs that can reach it.
/// Only the work up to the target counts; all other work is done after it.
///
/// Two targets of one job give two such bounds. The work up to the second continues the work up to
/// the first; ignoring that makes neither bound larger.
fn time_to(jobs: &[Job], work_to: fn(&Job) -> Option<f64>, rooms: &[f64]) -> Option<Bound> {
    let reaching = jobs.iter().filter_map(|job| {
        let work = work_to(job).filter(|_| job.work.is_finite())?;
        Some(Task { work, ..Task::for_job(job) })
    });
    let all: Vec<Task> = reaching.collect();
    // A target that is reached from the start takes no time and no CPU.
    let tasks: Vec<Task> = all.iter().copied().filter(|task| task.work > 0.0).collect();
    if tasks.is_empty() {
        return None;
    }
    let part = count(tasks.len()) / count(all.len());
    let Bound { limit, reached } = completion(&tasks, rooms);
    Some(Bound { limit: limit * part, reached: reached.map(|reached| reached * part) })
}

/// Both ends of the least mean area under the loss. The area of a job without a loss is 0.
fn area_under_loss(jobs: &[Job], rooms: &[f64], until: f64) -> Option<Bound> {
    let with: Vec<&Job> = jobs.iter().filter(|job| job.loss.is_some()).collect();
    let chains: Option<Vec<Chain>> = with.iter().map(|job| Chain::below(job)).collect();
    let chains = chains.filter(|chains| !chains.is_empty())?;
    let limit = loss_area::loss_area(&chains, rooms.iter().sum(), until) / count(jobs.len());
    // The pieces of a job that may be ended lie below its loss, so no schedule follows them.
    let whole = with.iter().all(|job| Task::for_job(job).work >= job.work);
    let reached = whole.then(|| reached(&chains, rooms, Order::Density, until)).flatten();
    Some(Bound { limit, reached: reached.map(|reached| reached.area / count(jobs.len())) })
}

/// The figures of a schedule that knows the future, unless it takes too long to find.
fn reached(chains: &[Chain], rooms: &[f64], order: Order, until: f64) -> Option<Reached> {
    let pieces: usize = chains.iter().map(|chain| chain.pieces.len()).sum();
    (pieces <= MAX_PIECES).then(|| schedule(chains, rooms, order, until))
}

impl Task {
    fn for_job(job: &Job) -> Self {
        // The fixed time of batches lowers the rate, so the fastest rate is that of the job alone.
        let cap = if job.fixed > 0.0 { job.work / job.training_alone() } else { job.most() };
        // If it may be ended at its objective, the work up to there is enough.
        let enough = job.work_to_objective().filter(|_| job.may_terminate);
        Self { release: job.arrive + job.start_seconds(), work: enough.unwrap_or(job.work), cap }
    }

    /// How long it takes with the largest share that it can use.
    fn alone(&self) -> f64 {
        self.work / self.cap
    }
}

/// The largest of three lower bounds of the mean completion time on `machines` nodes: no job is
/// faster than alone; all nodes as one fast node, on which the job with the least remaining work
/// goes first, are faster than the nodes; and the mean of busy times. On one node that every job
/// can fill, the second is exact: it is a schedule, and there is none better.
///
/// Source of the second: Schrage, "A proof of the optimality of the shortest remaining processing
/// time discipline", Operations Research 16(3), 1968. Anything that runs on the nodes could run on
/// the fast node, which can do all of it at once.
pub fn mean_completion(tasks: &[Task], machines: f64) -> f64 {
    let alone = tasks.iter().map(Task::alone).sum::<f64>() / count(tasks.len());
    let exact = tasks.iter().all(|task| task.cap >= machines);
    let pooled = srpt(tasks, machines);
    if exact { pooled } else { alone.max(pooled).max(busy_time(tasks, machines)) }
}

#[cfg(test)]
mod tests;
