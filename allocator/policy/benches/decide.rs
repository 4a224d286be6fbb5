//! One decision of each policy, for 10 to 10,000 jobs: `make bench`.
//!
//! Cluster policies have 50 nodes. For policies that admit jobs, a tenth of the jobs waits. Expected:
//! the time grows as n or n log n in the number of jobs, and stays far below the policy's interval.

use std::cell::Cell;

use divan::{Bencher, black_box};
use paceline_policy::frame::{Job, Limit, Node, Usage};
use paceline_policy::policies::{self, AnyPolicy};
use paceline_policy::unit::count;
use paceline_policy::{Frame, GangFrame, JobId, Params, Policy, TaskFrame, Variant};

const JOBS: [usize; 4] = [10, 100, 1_000, 10_000];
const NODES: usize = 50;

fn main() {
    divan::main();
}

fn built(name: &str) -> AnyPolicy {
    policies::build(name, Variant::Resolved, &Params::default()).expect("it has defaults")
}

/// Measures a policy that already knows the jobs: the usual case, not the first frame.
fn decide(bencher: Bencher<'_, '_>, name: &str, jobs: usize) {
    let AnyPolicy::Jobs(mut policy) = built(name) else { return };
    let round = Cell::new(0_usize);
    let next = || {
        round.set(round.get() + 1);
        frame(round.get(), jobs)
    };
    for _ in 0..3 {
        black_box(policy.decide(&next()));
    }
    let policy: &mut dyn Policy = policy.as_mut();
    bencher.with_inputs(next).bench_local_refs(|frame| policy.decide(frame));
}

/// Jobs whose losses fall at different rates; some no longer fall.
fn frame(round: usize, jobs: usize) -> Frame {
    let node =
        |at: usize| Node { name: format!("n{at:02}").into(), cpus: Some(16.0), ..Node::default() };
    let job = |at: usize| {
        let rate = if at.is_multiple_of(3) { 0.0 } else { 0.1 * count(at % 7) };
        Job {
            node: Some(format!("n{:02}", at % NODES).into()),
            loss: Some((-rate * count(round)).exp() + 0.1),
            batch_latency: Some(0.1 + 0.01 * count(at % 20)),
            usage: Usage { cpu: Some(0.9 / count(jobs)), ..Usage::default() },
            limit: Limit { cpu: Some(0.5), applied: Some(0.5), ..Limit::default() },
            targets: paceline_wire::Targets {
                acceptable: Some(0.5),
                objective: None,
                batch_latency: Some(0.2),
            },
            ..Job::new(JobId::new(format!("job-{at:05}")).expect("it has a name"))
        }
    };
    Frame {
        t: 30.0 * count(round),
        nodes: (0..NODES).map(node).collect(),
        jobs: (0..jobs).map(job).collect(),
    }
}

#[divan::bench(args = JOBS)]
fn none(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "none", jobs);
}

#[divan::bench(args = JOBS)]
fn flowcon(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "flowcon", jobs);
}

/// The same jobs without targets for their batches, so that all of them train, and with steps and totals.
#[divan::bench(args = JOBS)]
fn paceline(bencher: Bencher<'_, '_>, jobs: usize) {
    let AnyPolicy::Jobs(mut policy) = built("paceline") else { return };
    let round = Cell::new(0_usize);
    let next = || {
        round.set(round.get() + 1);
        let mut frame = frame(round.get(), jobs);
        for (at, job) in frame.jobs.iter_mut().enumerate() {
            let steps = 10 + 5 * round.get() * (1 + at % 5);
            job.targets.batch_latency = None;
            job.cpu_seconds = Some(0.5 * count(steps));
            (job.step, job.total_steps) = (u64::try_from(steps).ok(), Some(1_000_000));
        }
        frame
    };
    for _ in 0..3 {
        black_box(policy.decide(&next()));
    }
    let policy: &mut dyn Policy = policy.as_mut();
    bencher.with_inputs(next).bench_local_refs(|frame| policy.decide(frame));
}

#[divan::bench(args = JOBS)]
fn tradl(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "tradl", jobs);
}

#[divan::bench(args = JOBS)]
fn dqoes(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "dqoes", jobs);
}

#[divan::bench(args = JOBS)]
fn specon(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "specon", jobs);
}

#[divan::bench(args = JOBS)]
fn spread(bencher: Bencher<'_, '_>, jobs: usize) {
    decide(bencher, "spread", jobs);
}

/// A tenth of the tasks waits to be placed.
#[divan::bench(args = JOBS)]
fn dltap(bencher: Bencher<'_, '_>, jobs: usize) {
    let AnyPolicy::Tasks(mut policy) = built("dltap") else { return };
    let task = |at: usize| {
        let role = if at.is_multiple_of(5) { "ps" } else { "worker" };
        let node = if at.is_multiple_of(10) { None } else { Some(format!("n{:02}", at % NODES)) };
        serde_json::json!({"id": format!("task-{at:05}"), "job": format!("job-{:04}", at / 5),
            "role": role, "cpu": 1, "memory": 1e9, "node": node})
    };
    let tasks: Vec<_> = (0..jobs).map(task).collect();
    let frame = serde_json::json!({"t": 1, "nodes": nodes(jobs), "tasks": tasks}).to_string();
    let frame = TaskFrame::parse(&frame).expect("it is well made");
    bencher.bench_local(|| policy.decide(black_box(&frame)));
}

#[divan::bench(args = JOBS)]
fn kod2(bencher: Bencher<'_, '_>, jobs: usize) {
    admit(bencher, "kod2", jobs);
}

#[divan::bench(args = JOBS)]
fn fifo(bencher: Bencher<'_, '_>, jobs: usize) {
    admit(bencher, "fifo", jobs);
}

#[divan::bench(args = JOBS)]
fn fifo_gang(bencher: Bencher<'_, '_>, jobs: usize) {
    admit(bencher, "fifo-gang", jobs);
}

/// Running jobs fill the nodes; waiting jobs fit only if others shrink.
fn admit(bencher: Bencher<'_, '_>, name: &str, jobs: usize) {
    let job = |at: usize| {
        let waits = at.is_multiple_of(10);
        let node = format!("n{:02}", at % NODES);
        let placement = if waits {
            serde_json::json!({})
        } else {
            serde_json::json!({"ps": {&node: 1}, "workers": {&node: 2}})
        };
        serde_json::json!({"id": format!("job-{at:05}"), "submitted": at,
            "state": if waits { "waiting" } else { "running" },
            "ps": {"count": 1, "cpu": 1, "memory": 1e9},
            "worker": {"min": 1 + at % 2, "max": 4, "cpu": 1 + at % 3, "memory": 1e9},
            "placement": placement})
    };
    let all: Vec<_> = (0..jobs).map(job).collect();
    let frame = serde_json::json!({"t": jobs, "nodes": nodes(jobs), "jobs": all}).to_string();
    let frame = GangFrame::parse(&frame).expect("it is well made");
    let fresh = || match built(name) {
        AnyPolicy::Gangs(policy) => policy,
        AnyPolicy::Jobs(_) | AnyPolicy::Tasks(_) => unreachable!("it admits jobs"),
    };
    bencher.with_inputs(fresh).bench_local_refs(|policy| policy.decide(black_box(&frame)));
}

/// Nodes with capacity for about `jobs` jobs.
fn nodes(jobs: usize) -> Vec<serde_json::Value> {
    let cpus = 7 * jobs.div_ceil(NODES);
    let node = |at: usize| serde_json::json!({"name": format!("n{at:02}"), "cpus": cpus, "memory": 1e9 * count(cpus)});
    (0..NODES).map(node).collect()
}
