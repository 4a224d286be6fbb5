//! By how much deadlines must be put off until all of them can be kept.

use super::Task;
use super::flow::Network;

/// Beyond so many jobs the flow takes too long: then the sets that are looked at without it must do.
const MOST: usize = 200;
/// Cuts that are followed at most: each is the reason why the one before was not the last.
const CUTS: usize = 64;
/// Halvings until two numbers are next to each other.
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
/// That is a flow from jobs (as much as their work) through the times between arrivals and
/// deadlines (for each job as much as its cap) to the nodes (as much as they can do then): Horn,
/// "Some simple scheduling algorithms", Naval Research Logistics Quarterly 21(1), 1974, with rates
/// in place of nodes. Where the flow is too small, a cut names a set of jobs whose work does not fit
/// the time that they have; the least `x` at which it does is the next to be tried. Each `x` is thus
/// one below which some set cannot be done, whatever rounding did to the flow: a bound, and at the
/// end, where no such set is left, exact.
///
/// Exact for rates. Nodes keep up with them where there is one, or where every job can fill one:
/// `McNaughton`, "Scheduling with deadlines and loss functions", Management Science 6(1), 1959.
pub(super) fn put_off(jobs: &[Due], machines: f64) -> f64 {
    let all: Vec<&Due> = jobs.iter().collect();
    let mut least = all.iter().map(|job| fits(&[*job], machines, 0.0)).fold(0.0, f64::max);
    least = fits(&all, machines, least);
    for _ in 0..if jobs.len() > MOST { 0 } else { CUTS } {
        let late = crowded(jobs, machines, least);
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

/// How much the nodes can do of some jobs, each between its arrival and its deadline.
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

/// Jobs that together have too little room: none if all deadlines can be kept.
fn crowded(jobs: &[Due], machines: f64, x: f64) -> Vec<&Due> {
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

/// Whether [`put_off`] is exact: few enough jobs, and nodes that can do whatever pooled rates allow.
/// `rooms` are the shares of them that there are for jobs.
pub(super) fn is_exact(tasks: &[Task], rooms: &[f64]) -> bool {
    let whole = || rooms.iter().all(|room| *room >= 1.0);
    let filled = || whole() && tasks.iter().all(|task| task.cap >= 1.0);
    tasks.len() <= MOST && (rooms.len() == 1 || filled())
}
