//! The best that any policy could reach, objective by objective.
//!
//! A policy is judged by its distance to these. Each is a bound that holds whatever a policy does,
//! and is exact where its documentation says so; what a policy does not know (the work that is
//! left) the bounds do. Contention is left out, and so is what [starts](crate::scenario::Start) take from
//! others, which only makes runs slower: nothing is then said to be reached.

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

/// Beyond so many pieces of work no schedule is sought that comes near the bounds.
const MOST: usize = 5000;

/// What the bounds need to know of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// When it arrives, or at the soonest has started.
    pub release: f64,
    /// Its work, as seconds of a whole node.
    pub work: f64,
    /// The most nodes that it can use at once: at most 1.
    pub cap: f64,
}

/// What is known of the best value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bound {
    /// No policy is better.
    pub limit: f64,
    /// A schedule that knows the future gets there: the same, where the bound is exact. `None` where
    /// no schedule was sought.
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
    /// Of jobs on nodes, until a moment. `equal` is what [`equal_shares`] says of them.
    pub fn of(jobs: &[Job], equal: &[f64], nodes: &[Node], until: f64) -> Self {
        let rooms: Vec<f64> = nodes.iter().map(Node::room).collect();
        let machines = rooms.iter().sum();
        let mut bounds = Self::default();
        // Of jobs that noise may end, nobody knows how much work is enough.
        if !jobs.iter().any(noise_may_end) {
            let tasks: Vec<Task> = jobs.iter().map(Task::of).collect();
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

    /// Of distributed jobs on nodes.
    pub fn of_gangs(jobs: &[Gang], nodes: &[Node]) -> Self {
        let mut bounds = Self::of_tasks(&gangs::tasks(jobs, nodes), &[1.0]);
        // The cluster is not really one node.
        bounds.forget_reached();
        bounds
    }

    /// `rooms` are the shares of the nodes that there are for jobs.
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

    /// Means that count from releases do so from arrivals, as what they are bounds of does.
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

/// How long the starts of some jobs take at the least, on average.
fn mean_start(jobs: &[Job], which: impl Fn(&Job) -> bool) -> f64 {
    let starts: Vec<f64> = jobs.iter().filter(|job| which(job)).map(Job::start_seconds).collect();
    starts.iter().sum::<f64>() / count(starts.len())
}

/// Whether a job may be ended because its reports say that its objective is reached, while its loss
/// has not come so far: then it has done less work than any bound goes by.
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

/// Both ends of the least mean time until a target is reached, over the jobs that can reach it: only
/// the work up to there counts, and all the rest is done after it.
///
/// Two targets of one job are two such bounds. That the work up to the second is a continuation of the
/// work up to the first is left out, which makes neither of them larger.
fn time_to(jobs: &[Job], work_to: fn(&Job) -> Option<f64>, rooms: &[f64]) -> Option<Bound> {
    let reaching = jobs.iter().filter_map(|job| {
        let work = work_to(job).filter(|_| job.work.is_finite())?;
        Some(Task { work, ..Task::of(job) })
    });
    let all: Vec<Task> = reaching.collect();
    // What a job has from the start takes no time, and nobody's CPU.
    let tasks: Vec<Task> = all.iter().copied().filter(|task| task.work > 0.0).collect();
    if tasks.is_empty() {
        return None;
    }
    let part = count(tasks.len()) / count(all.len());
    let Bound { limit, reached } = completion(&tasks, rooms);
    Some(Bound { limit: limit * part, reached: reached.map(|reached| reached * part) })
}

/// Both ends of the least mean area under the loss; jobs without a loss count as none.
fn area_under_loss(jobs: &[Job], rooms: &[f64], until: f64) -> Option<Bound> {
    let with: Vec<&Job> = jobs.iter().filter(|job| job.loss.is_some()).collect();
    let chains: Option<Vec<Chain>> = with.iter().map(|job| Chain::below(job)).collect();
    let chains = chains.filter(|chains| !chains.is_empty())?;
    let limit = loss_area::loss_area(&chains, rooms.iter().sum(), until) / count(jobs.len());
    // A job that may be ended has pieces below its loss, along which nobody can go.
    let whole = with.iter().all(|job| Task::of(job).work >= job.work);
    let reached = whole.then(|| reached(&chains, rooms, Order::Density, until)).flatten();
    Some(Bound { limit, reached: reached.map(|reached| reached.area / count(jobs.len())) })
}

/// What a schedule comes to that knows the future, if it is soon found.
fn reached(chains: &[Chain], rooms: &[f64], order: Order, until: f64) -> Option<Reached> {
    let pieces: usize = chains.iter().map(|chain| chain.pieces.len()).sum();
    (pieces <= MOST).then(|| schedule(chains, rooms, order, until))
}

impl Task {
    fn of(job: &Job) -> Self {
        // A batch's fixed part costs a share of its own: the fastest that the job can be is alone.
        let cap = if job.fixed > 0.0 { job.work / job.training_alone() } else { job.most() };
        // Where it may be ended at its objective, that much work is enough.
        let enough = job.work_to_objective().filter(|_| job.may_terminate);
        Self { release: job.arrive + job.start_seconds(), work: enough.unwrap_or(job.work), cap }
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
    let exact = tasks.iter().all(|task| task.cap >= machines);
    let pooled = srpt(tasks, machines);
    if exact { pooled } else { alone.max(pooled).max(busy_time(tasks, machines)) }
}

#[cfg(test)]
mod tests;
