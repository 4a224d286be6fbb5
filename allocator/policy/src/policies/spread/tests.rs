use proptest::prelude::*;

use super::*;
use crate::frame::{Job, Limit, Node};

fn job(id: &str, node: Option<&str>) -> Job {
    let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{id}"}}]}}"#)).unwrap();
    let bare = frame.jobs.into_iter().next().unwrap();
    Job { node: node.map(Into::into), ..bare }
}

fn frame(t: f64, nodes: &[&str], jobs: Vec<Job>) -> Frame {
    let node = |name: &&str| Node { name: (*name).into(), ..Node::default() };
    Frame { t, nodes: nodes.iter().map(node).collect(), jobs }
}

fn spread() -> Spread {
    Spread::new(&Params::default()).unwrap()
}

/// Where the new jobs of a frame go, as `job:node`.
fn placed(decision: &Decision) -> Vec<String> {
    decision.place.iter().map(|a| format!("{}:{}", a.job, a.node)).collect()
}

#[test]
fn new_job_goes_to_the_node_with_fewest_jobs_then_by_name() {
    let jobs = vec![
        job("a", Some("n1")),
        job("b", Some("n3")),
        job("f", None),
        job("e", None),
        job("d", None),
        job("c", None),
    ];
    let decision = spread().decide(&frame(0.0, &["n3", "n2", "n1"], jobs));
    // One at a time in the order of ids: n2 is empty, then all have one.
    assert_eq!(placed(&decision), ["c:n2", "d:n1", "e:n2", "f:n3"]);
    let why = |id| decision.jobs[&JobId::new(id).unwrap()].why.to_string();
    assert_eq!(why("d"), "new: placed on n1, which has the fewest jobs (1)");
    assert_eq!(why("a"), "it has a node: it stays there");
}

#[test]
fn a_job_with_a_node_never_moves() {
    let jobs = ["a", "b", "c", "d"].map(|id| job(id, Some("n1"))).to_vec();
    let decision = spread().decide(&frame(0.0, &["n1", "n2"], jobs));
    assert!(decision.migrate.is_empty() && decision.place.is_empty());
}

#[test]
fn jobs_on_unlisted_nodes_are_not_counted() {
    let jobs = vec![job("a", Some("n1")), job("b", Some("gone")), job("c", None)];
    assert_eq!(placed(&spread().decide(&frame(0.0, &["n1"], jobs))), ["c:n1"]);
}

#[test]
fn without_a_node_a_new_job_waits() {
    let decision = spread().decide(&frame(0.0, &[], vec![job("a", None)]));
    let json = serde_json::to_value(&decision).unwrap();
    assert_eq!(json["place"], serde_json::Value::Null, "an empty list is left out");
    assert_eq!(json["jobs"]["a"]["why"], "new, no node available: it waits");
}

#[test]
fn placement_is_part_of_the_answer() {
    let decision = spread().decide(&frame(0.0, &["n1"], vec![job("a", None)]));
    let json = serde_json::to_value(&decision).unwrap();
    assert_eq!(json["place"], serde_json::json!([{"job": "a", "node": "n1"}]));
}

#[test]
fn limits_are_left_as_they_are() {
    let mut policy = spread();
    let limited = |cpu| Job { limit: Limit { cpu, ..Limit::default() }, ..job("a", Some("n1")) };
    let mut share = |cpu| {
        let decision = policy.decide(&frame(0.0, &["n1"], vec![limited(cpu)]));
        decision.limits[&JobId::new("a").unwrap()].get()
    };
    let shares = [None, Some(0.25), None, Some(-1.0), Some(2.0)].map(&mut share);
    assert_eq!(shares.map(|share| share.to_string()), ["1", "0.25", "0.25", "0.25", "1"]);
}

proptest! {
    #[test]
    fn new_jobs_end_up_evenly_spread(new in 0_usize..40, nodes in 1_usize..7) {
        let names: Vec<String> = (0..nodes).map(|n| format!("n{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let jobs = (0..new).map(|n| job(&format!("j{n}"), None)).collect();
        let decision = spread().decide(&frame(0.0, &names, jobs));
        prop_assert_eq!(decision.place.len(), new);
        let on = |name: &str| decision.place.iter().filter(|a| a.node == name).count();
        let held: Vec<usize> = names.iter().map(|name| on(name)).collect();
        prop_assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= 1);
    }

    #[test]
    fn every_job_is_answered_and_the_order_is_irrelevant(
        nodes in prop::collection::vec(prop::option::of("n[0-3]"), 0..12)
    ) {
        let jobs: Vec<Job> = nodes
            .iter()
            .enumerate()
            .map(|(n, node)| job(&format!("j{n}"), node.as_deref()))
            .collect();
        let reversed = jobs.iter().rev().cloned().collect();
        let one = spread().decide(&frame(1.0, &["n0", "n1", "n2"], jobs.clone()));
        prop_assert_eq!(one.limits.len(), jobs.len());
        prop_assert_eq!(one.jobs.len(), jobs.len());
        let new = jobs.iter().filter(|job| job.node.is_none()).count();
        prop_assert_eq!(one.place.len(), new);
        prop_assert_eq!(one, spread().decide(&frame(1.0, &["n2", "n1", "n0"], reversed)));
    }
}
