//! Events a second: `cargo bench -p paceline-sim`.
//!
//! An event is an arrival, an end, a run of a policy or a change of a limit. What is to be seen:
//! what one costs as jobs and nodes grow together, and as jobs alone do. A run of a policy looks at
//! every job of its node, so how many those are on average is told, too: a run of more jobs comes
//! nearer to the load that stays, and its nodes are fuller. The peak of the memory is that of
//! all that was run: for `crowd` alone, `cargo bench -p paceline-sim -- crowd`.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use paceline_sim::fluid::{Fluid, Party};
use paceline_sim::outcome::JobOutcome;
use paceline_sim::scenario::{Arm, LIBRARY};
use paceline_sim::{Outcome, Run, Scenario};

/// What each run of STRESS came to, one line each.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
fn main() {
    divan::main();
    for line in FIGURES.lock().expect("nobody panics").iter() {
        println!("{line}");
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory: {peak}");
    }
}

/// The most memory that this process had, as the kernel tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}

/// STRESS with as many jobs on as many nodes, and arrivals to match: the load is
/// 0.9, for above 1 the jobs that are there at once would be ever more.
fn stress(jobs: usize, nodes: usize) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == "STRESS").expect("it is listed");
    let gap = 50.0 / paceline_policy::unit::count(nodes);
    let text = listed
        .text
        .replace("count = 10000\n", &format!("count = {jobs}\n"))
        .replace("count = 100\n", &format!("count = {nodes}\n"))
        .replace("poisson = 0.4", &format!("poisson = {gap}"));
    Scenario::parse(&text).expect("it is well made")
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn simulate(bencher: Bencher<'_, '_>, policy: &str, scenario: &Scenario) {
    let arm: Arm = policy.parse().expect("it is a policy");
    let run = Run { scenario, arm: &arm, seed: 1, record: false };
    let outcome = run.simulate().expect("it runs").outcome;
    let fastest = Cell::new(Duration::MAX);
    bencher.counter(ItemsCount::new(outcome.events)).bench_local(|| {
        let began = Instant::now();
        let done = black_box(&run).simulate();
        fastest.set(fastest.get().min(began.elapsed()));
        done
    });
    let (jobs, nodes) = (outcome.jobs.len(), scenario.nodes.len());
    let each = fastest.get().as_secs_f64() / paceline_policy::unit::counter(outcome.events) * 1e9;
    let here = jobs_on_a_node(&outcome, nodes);
    let line = format!(
        "{policy:8}{jobs:7} jobs on {nodes:5} nodes: {each:6.0} ns an event, {here:5.2} jobs on a node"
    );
    FIGURES.lock().expect("nobody panics").push(line);
}

/// How many jobs a node has on average: by Little's law, from how long they stay.
fn jobs_on_a_node(outcome: &Outcome, nodes: usize) -> f64 {
    let stay: f64 = outcome.jobs.iter().filter_map(JobOutcome::completion).sum();
    stay / outcome.until / paceline_policy::unit::count(nodes)
}

#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 3, sample_size = 1)]
fn none(bencher: Bencher<'_, '_>, jobs: usize) {
    simulate(bencher, "none", &stress(jobs, jobs / 10));
}

#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 3, sample_size = 1)]
fn flowcon(bencher: Bencher<'_, '_>, jobs: usize) {
    simulate(bencher, "flowcon", &stress(jobs, jobs / 10));
}

/// Many jobs on a hundred nodes: to stay under a minute and 2 GiB.
#[divan::bench(
    args = [
        ("none", 1_000), ("none", 10_000), ("none", 100_000),
        ("flowcon", 1_000), ("flowcon", 10_000), ("flowcon", 100_000),
    ],
    sample_count = 3,
    sample_size = 1
)]
fn crowd(bencher: Bencher<'_, '_>, (policy, jobs): (&str, usize)) {
    simulate(bencher, policy, &stress(jobs, 100));
}

/// The fluid alone, without a policy: a job comes and goes among so many that share a node.
#[divan::bench(args = [10, 100, 1_000, 10_000, 100_000])]
fn fluid(bencher: Bencher<'_, '_>, jobs: usize) {
    let party = Party { weight: 1.0, cap: 1.0, limited: false, speed: 1.0, bend: 0.0, batch: 1.0 };
    let mut node = Fluid::new(0.0);
    for job in 0..jobs {
        node.insert(job, party, 1e9 + paceline_policy::unit::count(job));
    }
    bencher.counter(ItemsCount::new(2_usize)).bench_local(|| {
        node.insert(jobs, party, 1e9);
        node.remove(jobs)
    });
}

/// SP-50, whole.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn sp_50(bencher: Bencher<'_, '_>) {
    let listed = LIBRARY.iter().find(|listed| listed.name == "SP-50").expect("it is listed");
    let scenario = Scenario::parse(listed.text).expect("it is well made");
    let arm: Arm = "specon".parse().expect("it is a policy");
    let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
    bencher.bench_local(|| black_box(&run).simulate());
}
