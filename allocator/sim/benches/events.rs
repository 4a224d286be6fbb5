//! Events a second: `cargo bench -p paceline-sim`.
//!
//! An event is an arrival, an end, a run of a policy or a change of a limit. Its cost must not
//! depend on the number of jobs in a scenario. Most events are runs of a policy, and each run reads
//! every job of its node. So scenarios of all sizes have as many jobs on a node on average, which
//! the table shows. They grow in three ways:
//!
//! - `longer`: more jobs come to the same nodes, one after the other. The cost must be constant.
//! - `wider`: more jobs come within the same time to as many more nodes. The memory in use grows
//!   with them, and exceeds one CPU cache after the other.
//! - `widest`: the same with ten times the nodes, so that each has only ten jobs in all. In the
//!   largest, hardly any data is in a cache when it is needed.
//!
//! They are STRESS, without what makes small and large scenarios differ in kind. The longest jobs
//! last as long as a small scenario, so they are cut. A load above 1 would accumulate jobs over a
//! longer trace, so it is lower. The emptiest node has fewer jobs the more nodes there are, so jobs
//! are placed in turn. Empty nodes decide fast, so a scenario ends with its last arrival. Small
//! scenarios are simulated with more seeds, so that each size has 100,000 jobs. While a job is
//! limited, its node is sampled once a second. That is not an event, but part of an event's cost.
//!
//! `whole` is STRESS itself. `crowd` is STRESS with ten times its jobs, at a load of 0.9. The peak
//! memory is that of everything that was run. For `crowd` alone:
//! `cargo bench -p paceline-sim -- crowd`.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use paceline_policy::unit::{count, counter};
use paceline_sim::fluid::{Demand, Fluid};
use paceline_sim::outcome::JobOutcome;
use paceline_sim::scenario::{Arm, Listed};
use paceline_sim::{Outcome, Run, Scenario};

/// The result of each scenario, one line each.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The jobs of the largest scenario.
const MAX_JOBS: usize = 100_000;

/// A policy, and how many jobs come to how many nodes.
type Size = (&'static str, usize, usize);

#[expect(clippy::print_stdout, reason = "it is what a bench is run for")]
fn main() {
    divan::main();
    for line in FIGURES.lock().expect("not poisoned").iter() {
        println!("{line}");
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory: {peak}");
    }
}

/// The peak memory of this process, from the kernel.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}

/// STRESS with other lines.
fn stress(changes: &[(&str, String)]) -> Scenario {
    let listed = Listed::named("STRESS").expect("it is listed");
    let mut text = listed.text.to_owned();
    for (before, after) in changes {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    Scenario::parse(&text).expect("it is well made")
}

/// A scenario of this size, similar to those of the other sizes. The load is 0.7, since a job has
/// 36.8 machine-seconds of work.
fn like(jobs: usize, nodes: usize) -> Scenario {
    let gap = 36.8 / 0.7 / count(nodes);
    let seeds = format!("seeds = 5\nplacement = \"round-robin\"\nuntil = {:.1}", gap * count(jobs));
    stress(&[
        ("seeds = 5", seeds),
        ("count = 10000\n", format!("count = {jobs}\n")),
        ("count = 100\n", format!("count = {nodes}\n")),
        ("poisson = 0.4", format!("poisson = {gap}")),
        ("most = 5000.0", "most = 300.0".to_owned()),
    ])
}

/// Simulates a scenario, a small one over several seeds, and records the time per event of the
/// faster of two passes.
#[expect(clippy::disallowed_methods, reason = "this measures")]
fn simulate(bencher: Bencher<'_, '_>, kind: &str, (policy, jobs, nodes): Size, what: &Scenario) {
    let arm: Arm = policy.parse().expect("it is a policy");
    let seeds = 1..=u64::try_from(MAX_JOBS / jobs).expect("they are few");
    let fastest = Cell::new(Duration::MAX);
    let pass = || -> Vec<Outcome> {
        let began = Instant::now();
        let run = |seed| Run { scenario: what, arm: &arm, seed, record: false }.simulate();
        let all =
            seeds.clone().map(|seed| black_box(run(seed)).expect("it runs").outcome).collect();
        fastest.set(fastest.get().min(began.elapsed()));
        all
    };
    let outcomes = pass();
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    bencher.counter(ItemsCount::new(events)).bench_local(pass);
    let each = fastest.get().as_secs_f64() / counter(events) * 1e9;
    let here = jobs_on_a_node(&outcomes, nodes);
    let line = format!(
        "{kind:7}{policy:8}{jobs:7} jobs on {nodes:5} nodes: {each:5.0} ns an event, \
         {here:5.2} jobs on a node"
    );
    FIGURES.lock().expect("not poisoned").push(line);
}

/// How many jobs a node has on average.
fn jobs_on_a_node(outcomes: &[Outcome], nodes: usize) -> f64 {
    let stay = |outcome: &Outcome| -> f64 {
        let end = outcome.until;
        let stay = |job: &JobOutcome| (job.finished.unwrap_or(end) - job.arrived).max(0.0);
        outcome.jobs.iter().map(stay).sum()
    };
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.until).sum();
    outcomes.iter().map(stay).sum::<f64>() / seconds / count(nodes)
}

#[divan::bench(
    args = [
        ("none", 1_000, 10), ("none", 10_000, 10), ("none", 100_000, 10),
        ("flowcon", 1_000, 10), ("flowcon", 10_000, 10), ("flowcon", 100_000, 10),
    ],
    sample_count = 1,
    sample_size = 1
)]
fn longer(bencher: Bencher<'_, '_>, size: Size) {
    simulate(bencher, "longer", size, &like(size.1, size.2));
}

#[divan::bench(
    args = [
        ("none", 1_000, 10), ("none", 10_000, 100), ("none", 100_000, 1_000),
        ("flowcon", 1_000, 10), ("flowcon", 10_000, 100), ("flowcon", 100_000, 1_000),
    ],
    sample_count = 1,
    sample_size = 1
)]
fn wider(bencher: Bencher<'_, '_>, size: Size) {
    simulate(bencher, "wider", size, &like(size.1, size.2));
}

#[divan::bench(
    args = [
        ("none", 1_000, 100), ("none", 10_000, 1_000), ("none", 100_000, 10_000),
        ("flowcon", 1_000, 100), ("flowcon", 10_000, 1_000), ("flowcon", 100_000, 10_000),
    ],
    sample_count = 1,
    sample_size = 1
)]
fn widest(bencher: Bencher<'_, '_>, size: Size) {
    simulate(bencher, "widest", size, &like(size.1, size.2));
}

/// STRESS as it is listed.
#[divan::bench(
    args = [("none", 10_000, 100), ("flowcon", 10_000, 100)],
    sample_count = 1,
    sample_size = 1
)]
fn whole(bencher: Bencher<'_, '_>, size: Size) {
    simulate(bencher, "whole", size, &stress(&[]));
}

/// Many jobs on a hundred nodes: must stay under a minute and 2 GiB.
#[divan::bench(
    args = [("none", MAX_JOBS, 100), ("flowcon", MAX_JOBS, 100)],
    sample_count = 1,
    sample_size = 1
)]
fn crowd(bencher: Bencher<'_, '_>, size: Size) {
    let (jobs, gap) = (format!("count = {MAX_JOBS}\n"), "poisson = 0.5".to_owned());
    let scenario = stress(&[("count = 10000\n", jobs), ("poisson = 0.4", gap)]);
    simulate(bencher, "crowd", size, &scenario);
}

/// The fluid alone, without a policy: a job is added to and removed from a shared node.
#[divan::bench(args = [10, 100, 1_000, 10_000, 100_000])]
fn fluid(bencher: Bencher<'_, '_>, jobs: usize) {
    let (weight, cap, speed, batch) = (1.0, 1.0, 1.0, 1.0);
    let demand =
        Demand { weight, cap, limited: false, speed, fixed_per_work: 0.0, batch, contention: None };
    let mut node = Fluid::new(0.0);
    for job in 0..jobs {
        node.insert(job, demand, 1e9 + count(job));
    }
    bencher.counter(ItemsCount::new(2_usize)).bench_local(|| {
        node.insert(jobs, demand, 1e9);
        node.remove(jobs)
    });
}

/// SP-50, whole.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn sp_50(bencher: Bencher<'_, '_>) {
    let listed = Listed::named("SP-50").expect("it is listed");
    let scenario = Scenario::parse(listed.text).expect("it is well made");
    let arm: Arm = "specon".parse().expect("it is a policy");
    let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
    bencher.bench_local(|| black_box(&run).simulate());
}
