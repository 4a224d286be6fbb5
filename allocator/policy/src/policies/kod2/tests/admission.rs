use super::*;

/// ω′ and ω of one worker that takes these parts of the only node.
fn weight(min: u32, cpu: f64, memory: f64) -> (String, String) {
    let node = Node { memory: Some(64.0), ..node("w1", 10.0) };
    let mut job = gang("a", 0.0, 0.0, min, 0.0);
    job.worker = Workers { cpu: Some(cpu * 10.0), memory: Some(memory * 64.0), ..job.worker };
    let weight = decide(0.0, &[node], &[job]).weights[&JobId::new("a").unwrap()];
    (format!("{:.4}", weight.raw), format!("{:.5}", weight.weight))
}

#[test]
fn a_job_counts_by_its_workers_and_by_what_one_of_them_takes() {
    // K1, Eq. 1.
    assert_eq!(weight(2, 0.2, 0.125), ("6.1538".into(), "0.99788".into()));
    assert_eq!(weight(1, 0.4, 0.25), ("1.5385".into(), "0.82324".into()));
    assert_eq!(weight(4, 0.1, 0.0625).0, "24.6154");
    // K3: the rounded weight orders nothing.
    assert_eq!(weight(4, 0.05, 0.05), ("40.0000".into(), "1.00000".into()));
}

#[test]
fn zero_demand_or_an_empty_cluster_gives_a_very_large_weight() {
    assert_eq!(weight(2, 0.0, 0.0).0, "2000000000.0000");
    let nowhere = decide(0.0, &[], &[gang("a", 0.0, 1.0, 2, 1.0)]);
    assert!((nowhere.weights[&JobId::new("a").unwrap()].raw - 2e9).abs() < 1.0);
    assert_eq!(waiting(&nowhere), ["a"]);
}

#[test]
fn weights_are_those_of_waiting_and_running_jobs() {
    let over = Gang { state: State::Finished, ..gang("over", 0.0, 1.0, 1, 1.0) };
    let run = running(gang("run", 0.0, 0.0, 1, 1.0), [], [("w1", 1)]);
    let scaling = decide(0.0, &nodes([("w1", 4.0)]), &[over, run, gang("a", 0.0, 1.0, 1, 9.0)]);
    let weighed: Vec<&str> = scaling.weights.keys().map(JobId::as_str).collect();
    assert_eq!(weighed, ["a", "run"]);
}

#[test]
fn larger_raw_goes_first_even_where_weights_round_alike() {
    // K3, K5: ω′ is 2000 and 4000, ω is 1 for both.
    let jobs = [gang("a", 0.0, 0.0, 40, 1.0), gang("b", 5.0, 0.0, 80, 1.0)];
    let scaling = decide(10.0, &nodes([("w1", 100.0)]), &jobs);
    assert_eq!(started(&scaling), ["b"]);
    assert_eq!(
        reason(&scaling, "a"),
        "0 ps and 40 workers do not fit now: raw 2000.0000, not starving (10.0 s < 30 s) \
         and not first in line"
    );
}

#[test]
fn starving_job_goes_before_all_others() {
    // K12: at 30 s exactly, whatever the weights.
    let jobs = [gang("low", 0.0, 0.0, 1, 3.0), gang("high", 1.0, 0.0, 3, 1.0)];
    let nodes = nodes([("w1", 4.0)]);
    assert_eq!(started(&decide(29.9, &nodes, &jobs)), ["high"]);
    let starving = decide(30.0, &nodes, &jobs);
    assert_eq!(started(&starving), ["low"]);
    assert_eq!(
        reason(&starving, "low"),
        "raw 0.6667, starving (30.0 s >= 30 s): 0 ps and 1 workers fit on one node, \
         the one left least idle (0.250)"
    );
}

#[test]
fn starving_jobs_go_by_waiting_time_then_larger_raw_then_id() {
    let jobs = [
        gang("d", 1.0, 0.0, 9, 1.0),
        gang("c", 0.0, 0.0, 9, 1.0),
        gang("b", 0.0, 0.0, 9, 1.0),
        gang("a", 0.0, 0.0, 8, 1.0),
    ];
    let scaling = decide(100.0, &nodes([("w1", 5.0)]), &jobs);
    // None fits even the empty cluster, so none holds up the others.
    assert_eq!(waiting(&scaling), ["b", "c", "a", "d"]);
}

#[test]
fn missing_submission_time_is_when_the_job_was_first_seen() {
    let nodes = nodes([("w1", 4.0)]);
    let silent = Gang { submitted: None, ..gang("a", 0.0, 0.0, 1, 3.0) };
    let late = |t| gang("b", t, 0.0, 3, 1.0);
    let full = running(gang("r", 0.0, 0.0, 9, 0.5), [], [("w1", 8)]);
    let mut policy = policy(Variant::Resolved);
    policy.decide(&frame(0.0, &nodes, &[silent.clone(), full.clone()]));
    let starving = policy.decide(&frame(30.0, &nodes, &[silent.clone(), late(29.0)]));
    assert_eq!(started(&starving), ["a"]);
    // A job that went is forgotten: back again, it is new.
    policy.decide(&frame(31.0, &nodes, &[]));
    let new = policy.decide(&frame(32.0, &nodes, &[silent, late(29.0)]));
    assert_eq!(started(&new), ["b"]);
}

#[test]
fn job_goes_to_the_one_node_that_it_leaves_least_idle() {
    // O8: 2 + 2·1 cores fit on all three; w2 is left with 1 of 5.
    let nodes = nodes([("w1", 8.0), ("w2", 5.0), ("w3", 6.0)]);
    let scaling = decide(0.0, &nodes, &[gang("a", 0.0, 2.0, 2, 1.0)]);
    assert_eq!(
        scaling.start[0].layout,
        Layout { ps: counts([("w2", 1)]), workers: counts([("w2", 2)]) }
    );
}

#[test]
fn an_exact_fit_counts() {
    // K7: three times 0.1 is more than 0.3, but not by more than ε.
    let scaling = decide(0.0, &nodes([("w1", 0.3)]), &[gang("a", 0.0, 0.1, 2, 0.1)]);
    assert_eq!(started(&scaling), ["a"]);
    assert_eq!(
        waiting(&decide(0.0, &nodes([("w1", 0.3)]), &[gang("a", 0.0, 0.1, 2, 0.101)])),
        ["a"]
    );
}

#[test]
fn idle_shares_are_compared_to_nine_decimals() {
    // w2 is overfull by less than that: as idle as w1, whose name comes first.
    let full = |id: &str, at, cores| running(gang(id, 0.0, 0.0, 1, cores), [], [(at, 1)]);
    let jobs = [full("r", "w1", 1.0), full("s", "w2", 1.0 + 1e-12), gang("a", 0.0, 0.0, 1, 0.0)];
    let scaling = decide(0.0, &nodes([("w1", 1.0), ("w2", 1.0)]), &jobs);
    assert_eq!(scaling.start[0].layout.workers, counts([("w1", 1)]));
}

#[test]
fn workers_go_to_the_idlest_nodes_and_the_ps_to_most_workers() {
    // O8: w3 is idlest (4 of 4), then w1 (3 of 4), then w2 (2 of 4). The third worker goes to w1.
    let nodes = nodes([("w1", 4.0), ("w2", 4.0), ("w3", 4.0)]);
    let others = [
        running(gang("r1", 0.0, 0.0, 1, 1.0), [], [("w1", 1)]),
        running(gang("r2", 0.0, 0.0, 2, 1.0), [], [("w2", 2)]),
    ];
    let with = |server, workers| {
        let mut jobs = others.to_vec();
        jobs.push(gang("a", 0.0, server, 3, workers));
        decide(0.0, &nodes, &jobs).start.pop().unwrap().layout
    };
    let beside = Layout { ps: counts([("w3", 1)]), workers: counts([("w1", 1), ("w3", 2)]) };
    assert_eq!(with(0.5, 1.7), beside);
    // With 1 core it no longer fits on w3, and goes to the idlest on which it does: w2 (2 of 4
    // free), since w1 has 1.3 left.
    let elsewhere = Layout { ps: counts([("w2", 1)]), ..beside };
    assert_eq!(with(1.0, 1.7), elsewhere);
}

#[test]
fn ps_goes_to_the_idler_node_when_worker_counts_tie() {
    let nodes = nodes([("w1", 4.0), ("w2", 5.0)]);
    let scaling = decide(0.0, &nodes, &[gang("a", 0.0, 1.0, 2, 3.0)]);
    assert_eq!(scaling.start[0].layout.ps, counts([("w2", 1)]));
}

#[test]
fn capacity_split_over_nodes_does_not_fit_one_large_worker() {
    // K7: 12 cores free as 4×3 cannot host a worker of 5.
    let nodes = nodes([("w1", 3.0), ("w2", 3.0), ("w3", 3.0), ("w4", 3.0)]);
    assert_eq!(waiting(&decide(0.0, &nodes, &[gang("a", 0.0, 0.0, 1, 5.0)])), ["a"]);
}

#[test]
fn only_running_jobs_on_listed_nodes_take_room() {
    let place =
        |gang: Gang| Gang { state: State::Waiting, ..running(gang, [("w1", 1)], [("w1", 3)]) };
    let gone = running(gang("gone", 0.0, 0.0, 3, 1.0), [], [("w9", 3)]);
    let jobs = [gone, place(gang("a", 0.0, 1.0, 3, 1.0))];
    assert_eq!(started(&decide(0.0, &nodes([("w1", 4.0)]), &jobs)), ["a"]);
}

#[test]
fn several_jobs_start_in_one_frame_on_the_remaining_capacity() {
    let jobs = ["a", "b", "c"].map(|id| gang(id, 0.0, 1.0, 1, 1.0));
    let scaling = decide(0.0, &nodes([("w1", 2.0), ("w2", 3.0)]), &jobs);
    assert_eq!(started(&scaling), ["a", "b"]);
    assert_eq!(waiting(&scaling), ["c"]);
}

#[test]
fn the_decision_is_written_as_documented() {
    let nodes = nodes([("w1", 4.0), ("w2", 1.0)]);
    let mut job = gang("a", 0.0, 1.0, 2, 1.0);
    job.worker.memory = None;
    let jobs = [job, gang("b", 0.0, 0.0, 1, 2.0)];
    let json = serde_json::to_value(decide(5.0, &nodes, &jobs)).unwrap();
    let expected = serde_json::json!({
        "t": 5.0,
        "policy": "kod2",
        "weights": {
            "a": {"raw": 8.0, "weight": 1.0 / (1.0 + (-8.0_f64).exp())},
            "b": {"raw": 1.0, "weight": 1.0 / (1.0 + (-1.0_f64).exp())}
        },
        "start": [{
            "job": "a", "ps": {"w1": 1}, "workers": {"w1": 2},
            "why": "raw 8.0000, not starving (5.0 s < 30 s): 1 ps and 2 workers fit on one node, \
                    the one left least idle (0.500)"
        }],
        "scale_in": [],
        "scale_out": [],
        "waiting": [{
            "job": "b",
            "why": "0 ps and 1 workers do not fit now: raw 1.0000, not starving (5.0 s < 30 s) \
                    and not first in line"
        }]
    });
    assert_eq!(json, expected);
}

#[test]
fn bad_parameters_are_named() {
    let error = |name: &str, value| {
        let mut given = Params::default();
        given.set(name, value);
        Kod2::new(Variant::Resolved, &given).unwrap_err().to_string()
    };
    assert_eq!(
        error("quiet", -1.0),
        r#"invalid parameter quiet "-1" of kod2: expected a number, at least 0"#
    );
    assert_eq!(
        error("starve_after", f64::NAN),
        r#"invalid parameter starve_after "NaN" of kod2: expected a number, at least 0"#
    );
    assert_eq!(
        error("interval", 1.0),
        r#"unknown parameter "interval" of kod2: expected one of starve_after, quiet"#
    );
}
