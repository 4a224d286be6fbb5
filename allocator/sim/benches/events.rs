//! Events a second: `cargo bench -p paceline-sim`.
//!
//! An event is an arrival, an end, a run of a policy or a change of a limit. What is to be seen: the
//! cost of one stays flat as jobs and nodes grow together.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use paceline_sim::fluid::{Fluid, Party};
use paceline_sim::scenario::{Arm, LIBRARY};
use paceline_sim::{Run, Scenario};

fn main() {
    divan::main();
}

/// STRESS with as many jobs, a node for every ten of them, and arrivals to match: the load stays.
fn stress(jobs: usize) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == "STRESS").expect("it is listed");
    let nodes = jobs / 10;
    let gap = 50.0 / paceline_policy::unit::count(nodes);
    let text = listed
        .text
        .replace("count = 1000\n", &format!("count = {jobs}\n"))
        .replace("count = 100\n", &format!("count = {nodes}\n"))
        .replace("poisson = 0.5", &format!("poisson = {gap}"));
    Scenario::parse(&text).expect("it is well made")
}

fn simulate(bencher: Bencher<'_, '_>, policy: &str, jobs: usize) {
    let scenario = stress(jobs);
    let arm: Arm = policy.parse().expect("it is a policy");
    let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
    let events = run.simulate().expect("it runs").outcome.events;
    bencher.counter(ItemsCount::new(events)).bench_local(|| black_box(&run).simulate());
}

#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 3, sample_size = 1)]
fn none(bencher: Bencher<'_, '_>, jobs: usize) {
    simulate(bencher, "none", jobs);
}

#[divan::bench(args = [1_000, 10_000], sample_count = 3, sample_size = 1)]
fn flowcon(bencher: Bencher<'_, '_>, jobs: usize) {
    simulate(bencher, "flowcon", jobs);
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
