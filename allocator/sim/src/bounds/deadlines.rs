//! By how much deadlines must be postponed until all of them can be kept.

use super::Task;
use super::flow::Network;

/// With more jobs the flow takes too long, and only simple sets of jobs are tested.
const MAX_JOBS: usize = 200;
/// The most cuts that are followed. Each shows why the `x` before was too small.
const MAX_CUTS: usize = 64;
/// Halvings until two numbers are adjacent.
const HALVINGS: usize = 60;

/// A job whose deadline is `base + x·pace`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) task: Task,
    pub(super) base: f64,
    pub(super) pace: f64,
}

impl Due {
    fn at(&self, x: f64) -> f64 {
        self.base + x * self.pace
    }
}

/// The least `x ≥ 0` at which `machines` nodes can keep all deadlines.
///
/// This is a flow from jobs through the times between arrivals and deadlines to the nodes. Its
/// capacities are the jobs' works, their caps, and what the nodes can do in each time. Source:
/// Horn, "Some simple scheduling algorithms", Naval Research Logistics Quarterly 21(1), 1974, with
/// rates in place of nodes. If the flow is too small, a cut names a set of jobs whose work does not
/// fit their time. The least `x` at which it does is tried next. Below each such `x` some set of
/// jobs cannot be done, whatever rounding did to the flow, so it is a bound. Once no such set is
/// left it is exact.
///
/// Exact for rates. Nodes can match rates if there is only one, or if every job can fill one:
/// `McNaughton`, "Scheduling with deadlines and loss functions", Management Science 6(1), 1959.
pub(super) fn least_postponement(jobs: &[Due], machines: f64) -> f64 {
    let all: Vec<&Due> = jobs.iter().collect();
    let mut least = all.iter().map(|job| fits(&[*job], machines, 0.0)).fold(0.0, f64::max);
    least = fits(&all, machines, least);
    for _ in 0..if jobs.len() > MAX_JOBS { 0 } else { MAX_CUTS } {
        let late = infeasible(jobs, machines, least);
        let next = if late.is_empty() { least } else { fits(&late, machines, least) };
        if next <= least {
            break;
        }
        least = next;
    }
    least
}

/// The least `x ≥ from` at which the work of some jobs fits the time that they have.
fn fits(jobs: &[&Due], machines: f64, from: f64) -> f64 {
    let work: f64 = jobs.iter().map(|job| job.task.work).sum();
    let enough = |x: f64| room(jobs, machines, x) >= work;
    if enough(from) {
        return from;
    }
    let (mut low, mut high) = (from, (2.0 * from).max(1.0));
    while !enough(high) && high.is_finite() {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    low
}

/// How much of these jobs the nodes can do between arrivals and deadlines.
fn room(jobs: &[&Due], machines: f64, x: f64) -> f64 {
    let live = jobs.iter().filter(|job| job.at(x) > job.task.release);
    let mut changes: Vec<(f64, f64)> = live
        .flat_map(|job| [(job.task.release, job.task.cap), (job.at(x), -job.task.cap)])
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut room, mut caps, mut before) = (0.0, 0.0_f64, 0.0);
    for (at, cap) in changes {
        room += (at - before) * caps.clamp(0.0, machines);
        caps += cap;
        before = at;
    }
    room
}

/// Jobs that together have too little time; none if all deadlines can be kept.
fn infeasible(jobs: &[Due], machines: f64, x: f64) -> Vec<&Due> {
    let mut times: Vec<f64> = jobs.iter().flat_map(|job| [job.task.release, job.at(x)]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let spans: Vec<(f64, f64)> = times.iter().copied().zip(times.iter().copied().skip(1)).collect();
    let (source, sink) = (jobs.len() + spans.len(), jobs.len() + spans.len() + 1);
    let mut network = Network::new(sink + 1);
    for (number, (from, to)) in spans.iter().enumerate() {
        network.edge(jobs.len() + number, sink, (to - from) * machines);
    }
    for (number, job) in jobs.iter().enumerate() {
        network.edge(source, number, job.task.work);
        for (span, (from, to)) in spans.iter().enumerate() {
            if *from >= job.task.release && *to <= job.at(x) {
                network.edge(number, jobs.len() + span, (to - from) * job.task.cap);
            }
        }
    }
    let side = network.cut(source, sink);
    jobs.iter().zip(side).filter_map(|(job, late)| late.then_some(job)).collect()
}

/// Whether [`least_postponement`] is exact: few enough jobs, and nodes that can match pooled rates. `rooms`
/// are the shares of the nodes available to jobs.
pub(super) fn is_exact(tasks: &[Task], rooms: &[f64]) -> bool {
    let whole = || rooms.iter().all(|room| *room >= 1.0);
    let filled = || whole() && tasks.iter().all(|task| task.cap >= 1.0);
    tasks.len() <= MAX_JOBS && (rooms.len() == 1 || filled())
}
