use proptest::prelude::*;

use super::*;

fn frame(t: f64, nodes: &[(&str, f64)], jobs: &[String]) -> GangFrame {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(name, cpus)| format!(r#"{{"name": "{name}", "cpus": {cpus}, "memory": {cpus}}}"#))
        .collect();
    let (nodes, jobs) = (nodes.join(","), jobs.join(","));
    GangFrame::parse(&format!(r#"{{"t": {t}, "nodes": [{nodes}], "jobs": [{jobs}]}}"#)).unwrap()
}

/// A job of `workers` workers with `cores` cores each; `rest` contains further fields.
fn job(id: &str, submitted: f64, workers: u32, cores: f64, rest: &str) -> String {
    format!(
        r#"{{"id": "{id}", "submitted": {submitted},
            "worker": {{"min": {workers}, "cpu": {cores}, "memory": {cores}}} {rest}}}"#
    )
}

/// The same, with all of them on one node.
fn running(id: &str, workers: u32, cores: f64, node: &str) -> String {
    let rest =
        format!(r#", "state": "running", "placement": {{"workers": {{"{node}": {workers}}}}}"#);
    job(id, 0.0, workers, cores, &rest)
}

fn fifo() -> Fifo {
    Fifo::new(&Params::default()).unwrap()
}

/// What is bound, as `job ps/workers`, with nodes.
fn bound(scaling: &Scaling) -> Vec<String> {
    let text = |counts: &BTreeMap<String, u32>| {
        counts.iter().map(|(at, n)| format!("{at}:{n}")).collect::<Vec<_>>().join(",")
    };
    let start = |s: &Start| format!("{} {}/{}", s.job, text(&s.layout.ps), text(&s.layout.workers));
    scaling.start.iter().map(start).collect()
}

fn waiting(scaling: &Scaling) -> Vec<String> {
    scaling.waiting.iter().map(|w| format!("{}: {}", w.job, w.why)).collect()
}

#[test]
fn each_task_goes_to_the_idlest_node_by_then_ps_first() {
    let ps = r#", "ps": {"count": 1, "cpu": 2, "memory": 2}"#;
    let frame = frame(0.0, &[("w1", 4.0), ("w2", 3.0)], &[job("a", 0.0, 3, 1.0, ps)]);
    let scaling = fifo().decide(&frame);
    // Of equals the first by name gets the ps; then w2 is idlest, then w2 again, then w1.
    assert_eq!(bound(&scaling), ["a w1:1/w1:1,w2:2"]);
    assert!(scaling.waiting.is_empty() && scaling.scale_in.is_empty());
    assert!((scaling.weights[&JobId::new("a").unwrap()].raw - 6.0).abs() < 1e-9);
    assert_eq!(scaling.start[0].why.to_string(), "1 of 1 ps and 3 of 3 workers bound: complete");
}

#[test]
fn task_goes_to_the_idlest_node_that_it_fits() {
    let frame = frame(
        0.0,
        &[("w1", 2.0), ("w2", 8.0)],
        &[running("r", 3, 1.0, "w2"), job("a", 0.0, 1, 4.0, "")],
    );
    assert_eq!(bound(&fifo().decide(&frame)), ["a /w2:1"]);
}

#[test]
fn job_is_bound_task_by_task_and_bound_tasks_hold_capacity() {
    let mut fifo = fifo();
    let nodes = [("w1", 4.0)];
    let (a, b) = (job("a", 0.0, 2, 2.0, ""), job("b", 1.0, 2, 1.0, ""));
    let r = running("r", 1, 1.0, "w1");
    let first = fifo.decide(&frame(0.0, &nodes, &[r.clone(), a.clone(), b.clone()]));
    assert_eq!(bound(&first), ["a /w1:1", "b /w1:1"]);
    let rest = "the others fit on no node, the bound ones keep their capacity";
    assert_eq!(
        waiting(&first),
        [
            format!("a: 0 of 0 ps and 1 of 2 workers bound: {rest}"),
            format!("b: 0 of 0 ps and 1 of 2 workers bound: {rest}")
        ]
    );
    let same = fifo.decide(&frame(1.0, &nodes, &[r, a.clone(), b.clone()]));
    assert!(same.start.is_empty());
    assert_eq!(waiting(&same), waiting(&first));
    // r is over: one core, which b fits and a does not.
    let over = fifo.decide(&frame(2.0, &nodes, &[a.clone(), b.clone()]));
    assert_eq!(bound(&over), ["b /w1:1"]);
    assert_eq!(over.waiting.len(), 1);
    // b is complete, but not seen running yet: it is not bound twice.
    let unseen = fifo.decide(&frame(3.0, &nodes, &[a.clone(), b]));
    assert!(unseen.start.is_empty());
    assert_eq!(waiting(&unseen)[1], "b: 0 of 0 ps and 2 of 2 workers bound: complete");
    let seen = fifo.decide(&frame(4.0, &nodes, &[a.clone(), running("b", 2, 1.0, "w1")]));
    assert!(seen.start.is_empty());
    assert_eq!(bound(&fifo.decide(&frame(5.0, &nodes, &[a]))), ["a /w1:1"]);
}

#[test]
fn two_jobs_that_each_fit_the_empty_cluster_block_each_other() {
    // The deadlock: r ends too late. Each of the two could start alone.
    let mut fifo = fifo();
    let nodes = [("w1", 4.0), ("w2", 4.0), ("w3", 4.0)];
    let (a, b) = (job("a", 0.0, 3, 3.0, ""), job("b", 1.0, 8, 1.0, ""));
    for alone in [&a, &b] {
        let scaling = Fifo::default().decide(&frame(0.0, &nodes, std::slice::from_ref(alone)));
        assert!(scaling.waiting.is_empty());
    }
    fifo.decide(&frame(0.0, &nodes, &[running("r", 2, 1.0, "w3"), a.clone(), b.clone()]));
    for t in 1..50_u32 {
        let stuck = fifo.decide(&frame(t.into(), &nodes, &[a.clone(), b.clone()]));
        assert_eq!(stuck.waiting.len(), 2);
        assert!(t < 2 || stuck.start.is_empty());
    }
}

#[test]
fn tasks_of_a_removed_node_are_bound_again() {
    let mut fifo = fifo();
    let a = job("a", 0.0, 3, 2.0, "");
    let first = fifo.decide(&frame(0.0, &[("w1", 2.0), ("w2", 2.0)], std::slice::from_ref(&a)));
    assert_eq!(bound(&first), ["a /w1:1,w2:1"]);
    let later = fifo.decide(&frame(1.0, &[("w1", 2.0), ("w3", 9.0)], &[a]));
    assert_eq!(bound(&later), ["a /w3:2"]);
}

#[test]
fn a_job_that_went_is_forgotten() {
    let mut fifo = fifo();
    let nodes = [("w1", 3.0)];
    let a = job("a", 0.0, 2, 2.0, "");
    fifo.decide(&frame(0.0, &nodes, std::slice::from_ref(&a)));
    fifo.decide(&frame(1.0, &nodes, &[]));
    assert_eq!(bound(&fifo.decide(&frame(2.0, &nodes, &[a]))), ["a /w1:1"]);
}

#[test]
fn every_parameter_is_refused() {
    let mut given = Params::default();
    given.set("quiet", 1.0);
    let error = Fifo::new(&given).unwrap_err().to_string();
    assert_eq!(error, r#"unknown parameter "quiet" of fifo: expected no parameters"#);
}

proptest! {
    #[test]
    fn nothing_is_bound_twice_nor_beyond_what_a_node_holds(
        runs in prop::collection::vec(prop::collection::btree_map("[a-e]", (0..5_u32, 0..5_u32), 0..5), 1..8)
    ) {
        let mut fifo = fifo();
        let nodes = [("w1", 5.0), ("w2", 7.0)];
        let mut held: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        for (t, jobs) in (0_u32..).zip(&runs) {
            let jobs: BTreeMap<&String, (u32, f64)> =
                jobs.iter().map(|(id, (n, cores))| (id, (*n, f64::from(*cores)))).collect();
            held.retain(|id, _| jobs.contains_key(id));
            let lines: Vec<String> =
                jobs.iter().map(|(id, (n, cores))| job(id, 0.0, *n, *cores, "")).collect();
            let before = held.clone();
            let frame = frame(t.into(), &nodes, &lines);
            let scaling = fifo.decide(&frame);
            for start in &scaling.start {
                for (at, n) in &start.layout.workers {
                    *held.entry(start.job.to_string()).or_default().entry(at.clone()).or_default() += n;
                }
            }
            for (name, cpus) in nodes {
                let on = |held: &BTreeMap<String, BTreeMap<String, u32>>| -> f64 {
                    let cores = |(id, at): (&String, &BTreeMap<String, u32>)| {
                        f64::from(at.get(name).copied().unwrap_or(0)) * jobs[id].1
                    };
                    held.iter().map(cores).sum()
                };
                // A job that returns with another size may hold more than exists: it gets no more.
                prop_assert!(on(&held) <= cpus.max(on(&before)));
            }
            for (id, (needed, _)) in &jobs {
                let has: u32 = held.get(*id).map_or(0, |at| at.values().sum());
                let waits = scaling.waiting.iter().any(|w| w.job.as_str() == *id);
                prop_assert!(has >= *needed || waits);
            }
            let mut reversed = frame.clone();
            reversed.jobs.reverse();
            prop_assert_eq!(Fifo::default().decide(&frame), Fifo::default().decide(&reversed));
        }
    }
}
