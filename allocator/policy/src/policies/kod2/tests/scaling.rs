use super::*;

/// A running job of small ω′, whose workers take a core each.
fn lesser<const W: usize>(id: &str, min: u32, workers: [(&str, u32); W]) -> Gang {
    running(gang(id, 0.0, 0.0, min, 1.0), [], workers)
}

/// A waiting job of large ω′ that needs `cores` on one node.
fn better(id: &str, cores: f64) -> Gang {
    let mut job = gang(id, 1.0, cores, 9, 0.0);
    job.worker.cpu = Some(1e-6);
    job
}

#[test]
fn the_test_comes_after_the_last_removal_too() {
    // I5: idle 1, need 2, one worker there. In print this fails, with a partial plan.
    let jobs = [lesser("r", 0, [("w1", 1)]), better("a", 1.9)];
    let scaling = decide(1.0, &nodes([("w1", 2.0)]), &jobs);
    assert_eq!(changes(&scaling.scale_in), [("r", "w1", 1)]);
    assert!(scaling.start.is_empty() && scaling.scale_out.is_empty());
}

#[test]
fn removal_stops_as_soon_as_the_job_fits() {
    let jobs = [lesser("r", 0, [("w1", 2)]), better("a", 1.9)];
    let scaling = decide(1.0, &nodes([("w1", 3.0)]), &jobs);
    assert_eq!(changes(&scaling.scale_in), [("r", "w1", 1)]);
    assert_eq!(
        scaling.scale_in[0].why.to_string(),
        "raw 0.0000, keeps its min of 0: shrinks for a (raw 27000000.0000, \
         submitted 1.0 s later)"
    );
    assert_eq!(
        reason(&scaling, "a"),
        "1 ps and 9 workers do not fit now: capacity reserved on w1, \
         1 workers of others to be removed now"
    );
}

#[test]
fn no_job_shrinks_below_its_min_and_a_failure_changes_nothing() {
    // I7, I9: of each job one worker could go, and two are needed on one node.
    let jobs = [lesser("r", 1, [("w1", 2)]), lesser("s", 1, [("w2", 2)]), better("a", 1.9)];
    let scaling = decide(1.0, &nodes([("w1", 2.0), ("w2", 2.0)]), &jobs);
    assert!(scaling.scale_in.is_empty());
    assert_eq!(
        reason(&scaling, "a"),
        "1 ps and 9 workers do not fit now: removing workers of jobs ranked below raw \
         18000000.0000 does not make it fit"
    );
}

#[test]
fn removals_that_do_not_help_are_given_back() {
    // I6: r shrinks first, but its node is too small for a; what s gives is enough.
    let jobs = [lesser("r", 0, [("w1", 1)]), lesser("s", 1, [("w2", 3)]), better("a", 1.9)];
    let scaling = decide(1.0, &nodes([("w1", 1.0), ("w2", 3.0)]), &jobs);
    assert_eq!(changes(&scaling.scale_in), [("s", "w2", 2)]);
}

#[test]
fn victims_are_ordered_by_smaller_raw_then_later_then_id() {
    let victim = |id: &str, submitted, min| {
        let gang = gang(id, submitted, 0.0, min, 1.0);
        running(gang, [], [("w1", min + 1)])
    };
    let room = nodes([("w1", 7.0)]);
    let who = |jobs: [Gang; 2]| {
        let mut jobs = jobs.to_vec();
        jobs.push(better("a", 0.9));
        let scaling = decide(1.0, &room, &jobs);
        assert_eq!(scaling.scale_in.len(), 1);
        scaling.scale_in[0].job.to_string()
    };
    assert_eq!(who([victim("r", 0.0, 3), victim("s", 0.0, 2)]), "s");
    assert_eq!(who([victim("r", 0.5, 2), victim("s", 0.0, 3)]), "r");
    let room = nodes([("w1", 6.0)]);
    let who = |jobs: [Gang; 2]| {
        let mut jobs = jobs.to_vec();
        jobs.push(better("a", 0.9));
        decide(1.0, &room, &jobs).scale_in[0].job.to_string()
    };
    assert_eq!(who([victim("r", 0.0, 2), victim("s", 0.5, 2)]), "s");
    assert_eq!(who([victim("r", 0.0, 2), victim("s", 0.0, 2)]), "r");
}

#[test]
fn each_victim_goes_down_to_its_min_before_the_next() {
    let jobs = [
        running(gang("r", 0.0, 0.0, 1, 1.0), [], [("w1", 3)]),
        running(gang("s", 0.0, 0.0, 2, 1.0), [], [("w1", 4)]),
        better("a", 2.9),
    ];
    let scaling = decide(1.0, &nodes([("w1", 7.0)]), &jobs);
    assert_eq!(changes(&scaling.scale_in), [("r", "w1", 2), ("s", "w1", 1)]);
}

#[test]
fn job_of_equal_raw_is_shrunk_only_if_submitted_later() {
    // I2, I3, K6.
    let jobs = |submitted| {
        let run = running(gang("r", submitted, 0.0, 1, 2.0), [], [("w1", 2)]);
        [run, gang("a", 5.0, 0.0, 1, 2.0)]
    };
    let nodes = nodes([("w1", 4.0)]);
    assert_eq!(changes(&decide(5.0, &nodes, &jobs(5.5)).scale_in), [("r", "w1", 1)]);
    for earlier in [4.0, 5.0] {
        assert!(decide(5.0, &nodes, &jobs(earlier)).scale_in.is_empty());
    }
}

#[test]
fn only_the_first_in_line_and_starving_jobs_shrink_others() {
    // K11: b would fit if r gave a worker, but a is before it and too large for the cluster.
    let large = Gang { submitted: Some(0.0), ..better("a", 50.0) };
    let second = gang("b", 0.0, 0.0, 2, 0.5);
    let jobs = [lesser("r", 1, [("w1", 2)]), large, second];
    let nodes = nodes([("w1", 2.0)]);
    assert!(decide(29.0, &nodes, &jobs).scale_in.is_empty());
    assert_eq!(changes(&decide(30.0, &nodes, &jobs).scale_in), [("r", "w1", 1)]);
}

#[test]
fn first_in_line_shrinks_no_job_if_a_running_one_outranks_it() {
    // K5.
    let top = running(gang("top", 0.0, 0.0, 9, 0.1), [], [("w1", 9)]);
    let low = running(gang("low", 0.0, 0.0, 0, 1.0), [], [("w1", 1)]);
    let scaling = decide(9.0, &nodes([("w1", 2.0)]), &[top, low, gang("a", 1.0, 0.0, 1, 1.0)]);
    assert!(scaling.scale_in.is_empty());
    assert_eq!(
        reason(&scaling, "a"),
        "0 ps and 1 workers do not fit now: first in line, but its raw 1.0000 < 90.0000 of top, \
          which is running"
    );
}

#[test]
fn workers_leave_nodes_without_their_ps_first_then_least_idle() {
    // I4: r has its server on w1; w3 is less idle than w2.
    let mut run = gang("r", 0.0, 0.5, 1, 1.0);
    run = running(run, [("w1", 1)], [("w1", 1), ("w2", 1), ("w3", 1)]);
    let other = running(gang("s", 0.0, 0.0, 9, 0.1), [], [("w3", 9)]);
    let nodes = nodes([("w1", 1.5), ("w2", 2.0), ("w3", 2.0)]);
    let mut wide = gang("a", 1.0, 0.0, 30, 0.09);
    wide.worker.memory = Some(0.0);
    let scaling = decide(1.0, &nodes, &[run, other, wide]);
    // Of 30 workers, 11 fit on w2 and one on w3; the others take all that r can give.
    assert_eq!(changes(&scaling.scale_in), [("r", "w3", 1), ("r", "w2", 1)]);
}

#[test]
fn workers_on_unlisted_nodes_count_but_are_never_removed() {
    let jobs = [lesser("r", 2, [("w1", 2), ("w9", 1)]), better("a", 1.5)];
    let scaling = decide(1.0, &nodes([("w1", 2.0)]), &jobs);
    assert!(scaling.scale_in.is_empty(), "one worker is not enough, and no more can go");
    let jobs = [lesser("r", 2, [("w1", 2), ("w9", 1)]), better("a", 0.5)];
    assert_eq!(changes(&decide(1.0, &nodes([("w1", 2.0)]), &jobs).scale_in), [("r", "w1", 1)]);
}

/// A running job that may grow to `max` workers of a core each.
fn growing<const W: usize>(id: &str, max: u32, workers: [(&str, u32); W]) -> Gang {
    let mut run = running(gang(id, 0.0, 0.0, 1, 1.0), [], workers);
    run.worker.max = Some(max);
    run
}

#[test]
fn an_exact_fit_grows() {
    // O1: in print, idle exactly as much as one worker needs gives none.
    let scaling = decide(0.0, &nodes([("w1", 2.0)]), &[growing("r", 9, [("w1", 1)])]);
    assert_eq!(changes(&scaling.scale_out), [("r", "w1", 1)]);
    assert_eq!(
        scaling.scale_out[0].why.to_string(),
        "no job waits, no start or scaling yet: raw 1.0000, grows up to its max of 9"
    );
}

#[test]
fn a_job_grows_to_its_max_and_one_without_does_not() {
    // O2: workers on nodes that are not listed count.
    let wide = nodes([("w1", 9.0)]);
    let scaling = decide(0.0, &wide, &[growing("r", 4, [("w1", 1), ("w9", 1)])]);
    assert_eq!(changes(&scaling.scale_out), [("r", "w1", 2)]);
    let fixed = running(gang("r", 0.0, 0.0, 1, 1.0), [], [("w1", 1)]);
    assert!(decide(0.0, &wide, &[fixed]).scale_out.is_empty());
}

#[test]
fn job_grows_beside_ps_then_beside_workers_then_on_idlest_node() {
    // O4.
    let nodes = nodes([("w1", 2.0), ("w2", 3.0), ("w3", 4.0), ("w4", 8.0), ("w5", 8.0)]);
    let mut run = running(gang("r", 0.0, 1.0, 1, 1.0), [("w2", 1)], [("w1", 1), ("w3", 1)]);
    let mut grown = |max| {
        run.worker.max = Some(max);
        let scaling = decide(0.0, &nodes, std::slice::from_ref(&run));
        changes(&scaling.scale_out).into_iter().map(|(_, at, n)| format!("{at} {n}")).collect()
    };
    let steps: Vec<String> = grown(4);
    assert_eq!(steps, ["w2 2"]);
    // w3 has 3 of 4 left, then 2 of 4, as w1 has 1 of 2: of equals the first by name.
    assert_eq!(grown(6), ["w2 2", "w3 1", "w1 1"]);
    // Then the idlest: w4 and w5 are alike, and then w4 is a node with its workers.
    assert_eq!(grown(12), ["w2 2", "w3 3", "w1 1", "w4 4"]);
}

#[test]
fn the_larger_raw_grows_first_and_to_its_max() {
    // O5.
    let small = growing("a", 9, [("w1", 1)]);
    let mut large = running(gang("b", 5.0, 0.0, 2, 1.0), [], [("w1", 2)]);
    large.worker.max = Some(4);
    let scaling = decide(0.0, &nodes([("w1", 6.0)]), &[small, large]);
    assert_eq!(changes(&scaling.scale_out), [("b", "w1", 2), ("a", "w1", 1)]);
}

#[test]
fn no_job_grows_while_another_waits() {
    let jobs = [growing("r", 9, [("w1", 1)]), gang("a", 0.0, 0.0, 1, 7.0)];
    assert!(decide(0.0, &nodes([("w1", 3.0)]), &jobs).scale_out.is_empty());
}

#[test]
fn no_job_grows_before_a_quiet_period_has_passed() {
    // K14.
    let nodes = nodes([("w1", 8.0)]);
    let mut policy = policy(Variant::Resolved);
    let mut grown = |t: f64, job: &Gang| {
        changes(&policy.decide(&frame(t, &nodes, std::slice::from_ref(job))).scale_out).len()
    };
    assert_eq!(grown(0.0, &gang("r", 0.0, 0.0, 1, 1.0)), 0, "it starts");
    assert_eq!(grown(59.9, &growing("r", 3, [("w1", 1)])), 0);
    assert_eq!(grown(60.0, &growing("r", 3, [("w1", 1)])), 1);
    assert_eq!(grown(61.0, &growing("r", 4, [("w1", 3)])), 0, "it just grew");
    assert_eq!(grown(120.0, &growing("r", 4, [("w1", 3)])), 1);
}

#[test]
fn a_settled_cluster_is_left_alone() {
    let nodes = nodes([("w1", 4.0), ("w2", 4.0)]);
    let jobs = [
        running(gang("r", 0.0, 1.0, 3, 1.0), [("w1", 1)], [("w1", 3)]),
        growing("s", 2, [("w2", 2)]),
    ];
    let mut policy = policy(Variant::Resolved);
    for at in 0..20_u32 {
        let scaling = policy.decide(&frame(f64::from(at) * 60.0, &nodes, &jobs));
        assert!(scaling.scale_in.is_empty() && scaling.scale_out.is_empty());
    }
}
