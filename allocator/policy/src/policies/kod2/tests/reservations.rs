use super::*;

/// A running job of small ω′ on w1: `workers` of them, of a core each.
fn donor(workers: u32) -> Gang {
    running(gang("r", 0.0, 0.0, 1, 1.0), [], [("w1", workers)])
}

/// A waiting job of the largest ω′ here: two workers of a core each.
fn first(submitted: f64) -> Gang {
    gang("a", submitted, 0.0, 2, 1.0)
}

fn one_node() -> Vec<Node> {
    nodes([("w1", 3.0)])
}

/// What a policy answers to frames one second apart, from second 10 on.
fn run(policy: &mut Kod2, frames: &[Vec<Gang>]) -> Vec<Scaling> {
    let mut t = 9.0;
    let answer = |jobs: &Vec<Gang>| {
        t += 1.0;
        policy.decide(&frame(t, &one_node(), jobs))
    };
    frames.iter().map(answer).collect()
}

fn both(test: impl Fn(Kod2)) {
    for variant in [Variant::Resolved, Variant::Published] {
        test(policy(variant));
    }
}

#[test]
fn job_starts_only_when_its_capacity_is_really_free() {
    // K10: no removal is requested twice, whether it has been seen or not.
    both(|mut policy| {
        let answers = run(
            &mut policy,
            &[
                vec![donor(3), first(10.0)],
                vec![donor(3), first(10.0)],
                vec![donor(2), first(10.0)],
                vec![donor(1), first(10.0)],
            ],
        );
        assert_eq!(changes(&answers[0].scale_in), [("r", "w1", 2)]);
        for answer in &answers[..3] {
            assert!(answer.start.is_empty());
        }
        for answer in &answers[1..] {
            assert!(answer.scale_in.is_empty());
        }
        assert_eq!(started(&answers[3]), ["a"]);
        assert_eq!(
            reason(&answers[1], "a"),
            "0 ps and 2 workers do not fit now: capacity reserved on w1, \
             0 workers of others to be removed now"
        );
    });
}

#[test]
fn reserved_capacity_is_not_given_to_another_job() {
    // One core gets free in the second frame; b would fit, but it is a's.
    both(|mut policy| {
        let small = gang("b", 10.0, 0.0, 1, 1.0);
        let answers = run(
            &mut policy,
            &[vec![donor(3), first(10.0), small.clone()], vec![donor(2), first(10.0), small]],
        );
        assert!(answers.iter().all(|answer| answer.start.is_empty()));
    });
}

#[test]
fn later_jobs_start_while_an_earlier_one_awaits_its_capacity() {
    // K9: a needs almost two cores on one node, b only the one of w2.
    both(|mut policy| {
        let mut a = gang("a", 10.0, 1.9, 9, 0.0);
        a.worker.cpu = Some(1e-6);
        let nodes = nodes([("w1", 3.0), ("w2", 1.0)]);
        let scaling =
            policy.decide(&frame(10.0, &nodes, &[donor(3), a, gang("b", 10.0, 0.0, 1, 1.0)]));
        assert_eq!(changes(&scaling.scale_in), [("r", "w1", 2)]);
        assert_eq!((started(&scaling), waiting(&scaling)), (vec!["b"], vec!["a"]));
    });
}

#[test]
fn free_capacity_beyond_reservations_is_given_to_others() {
    both(|mut policy| {
        let with_b = |r| vec![donor(r), first(10.0), gang("b", 10.0, 0.0, 1, 1.0)];
        policy.decide(&frame(10.0, &nodes([("w1", 4.0)]), &with_b(3)));
        // r goes from 3 to 2, a takes 2: of five cores, one more is left.
        let scaling = policy.decide(&frame(11.0, &nodes([("w1", 5.0)]), &with_b(4)));
        assert_eq!(started(&scaling), ["b"]);
    });
}

#[test]
fn a_reservation_ends_with_its_job() {
    both(|mut policy| {
        let answers = run(
            &mut policy,
            &[vec![donor(3), first(10.0)], vec![donor(3)], vec![donor(3), first(12.0)]],
        );
        assert_eq!(changes(&answers[2].scale_in), [("r", "w1", 2)], "requested again");
    });
}

#[test]
fn a_reservation_ends_with_its_node() {
    both(|mut policy| {
        policy.decide(&frame(10.0, &one_node(), &[donor(3), first(10.0)]));
        policy.decide(&frame(11.0, &nodes([("w2", 1.0)]), &[donor(3), first(10.0)]));
        let back = policy.decide(&frame(12.0, &one_node(), &[donor(3), first(10.0)]));
        assert_eq!(changes(&back.scale_in), [("r", "w1", 2)]);
    });
}

#[test]
fn a_reservation_ends_when_its_plan_can_no_longer_come_true() {
    // Another job came to run on the node; then r has less to give than is needed.
    both(|mut policy| {
        let other = running(gang("s", 0.0, 0.0, 1, 1.0), [], [("w1", 1)]);
        let answers = run(
            &mut policy,
            &[
                vec![donor(3), first(10.0)],
                vec![donor(3), first(10.0), other],
                vec![donor(3), first(10.0)],
            ],
        );
        assert!(answers[1].scale_in.is_empty());
        assert!(reason(&answers[1], "a").contains("does not make it fit"));
        assert_eq!(changes(&answers[2].scale_in), [("r", "w1", 2)]);
    });
}

#[test]
fn a_victim_that_stopped_is_forgotten() {
    // a's plan takes a core of r on w1 and one of s on w2. While s has not shrunk yet, r stops and
    // comes back with all its workers: the removal is requested again.
    both(|mut policy| {
        let nodes = nodes([("w1", 2.0), ("w2", 2.0)]);
        let on = |id: &str, at, workers| running(gang(id, 0.0, 0.0, 1, 1.0), [], [(at, workers)]);
        let (r, s) = (on("r", "w1", 2), on("s", "w2", 2));
        let asked = policy.decide(&frame(10.0, &nodes, &[r.clone(), s.clone(), first(10.0)]));
        assert_eq!(changes(&asked.scale_in), [("r", "w1", 1), ("s", "w2", 1)]);
        let stopped = Gang { state: State::Finished, ..r.clone() };
        let other = on("t", "w1", 1);
        let jobs = [stopped, s.clone(), other, first(10.0)];
        let kept = policy.decide(&frame(11.0, &nodes, &jobs));
        assert!(reason(&kept, "a").contains("capacity reserved on w1, w2, 0 workers"));
        let back = policy.decide(&frame(12.0, &nodes, &[r, s, first(10.0)]));
        assert_eq!(changes(&back.scale_in), [("r", "w1", 1), ("s", "w2", 1)]);
    });
}

#[test]
fn a_plan_may_need_no_removal_at_all() {
    // One worker of r makes room for two: b's plan is what a's leaves of it, and c has none.
    let mut policy = policy(Variant::Published);
    let nodes = nodes([("w1", 4.0)]);
    let mut answer = |t, workers| {
        let run = running(gang("r", 0.0, 0.0, 1, 2.0), [], [("w1", workers)]);
        let jobs = ["a", "b", "c"].map(|id| gang(id, 1.0, 0.0, 1, 1.0));
        policy.decide(&frame(t, &nodes, &[&[run], jobs.as_slice()].concat()))
    };
    let asked = answer(40.0, 2);
    assert_eq!(changes(&asked.scale_in), [("r", "w1", 1)]);
    assert!(reason(&asked, "b").contains("capacity reserved on w1, 0 workers"));
    assert!(reason(&asked, "c").contains("does not make it fit"));
    assert_eq!(started(&answer(41.0, 1)), ["a", "b"]);
}

#[test]
fn no_job_passes_a_starving_job_that_fits_an_empty_cluster() {
    // K9: in print, b takes the free core, and later jobs do so, too.
    let other = running(gang("r", 0.0, 0.0, 2, 1.0), [], [("w1", 2)]);
    let jobs = [other, gang("a", 0.0, 0.0, 1, 3.0), gang("b", 20.0, 0.0, 1, 1.0)];
    let answer = |variant| policy(variant).decide(&frame(30.0, &one_node(), &jobs));
    let resolved = answer(Variant::Resolved);
    assert!(resolved.start.is_empty());
    assert_eq!(reason(&resolved, "b"), "behind a, which is starving and goes first");
    assert_eq!(started(&answer(Variant::Published)), ["b"]);
}

#[test]
fn plans_that_would_block_a_starving_job_forever_are_dropped() {
    // a's plan is made at 29 s; at 30 s large starves, goes first, and does not fit beside that
    // plan, not even when r is over: if kept, the plan would block both without end.
    let mut policy = policy(Variant::Resolved);
    let large = gang("large", 0.0, 0.0, 1, 3.0);
    let made = policy.decide(&frame(29.0, &one_node(), &[donor(3), first(20.0), large.clone()]));
    assert!(reason(&made, "a").contains("capacity reserved on w1"));
    let both = [first(20.0), large];
    assert_eq!(waiting(&policy.decide(&frame(30.0, &one_node(), &both))), ["large", "a"]);
    assert_eq!(started(&policy.decide(&frame(31.0, &one_node(), &both))), ["large"]);
}

#[test]
fn starving_job_too_large_for_the_cluster_blocks_no_other() {
    let jobs = [gang("a", 0.0, 0.0, 1, 4.0), gang("b", 20.0, 0.0, 1, 1.0)];
    assert_eq!(started(&decide(30.0, &one_node(), &jobs)), ["b"]);
}

#[test]
fn of_several_plans_the_largest_removal_from_a_victim_counts() {
    // Two starving jobs, one victim: each gets what the other does not.
    let mut policy = policy(Variant::Published);
    let nodes = nodes([("w1", 6.0)]);
    let jobs = |workers| {
        let run = running(gang("r", 0.0, 0.0, 1, 1.0), [], [("w1", workers)]);
        [run, gang("a", 1.0, 0.0, 2, 1.0), gang("b", 2.0, 0.0, 3, 1.0)]
    };
    let asked = policy.decide(&frame(40.0, &nodes, &jobs(6)));
    assert_eq!(changes(&asked.scale_in), [("r", "w1", 5)]);
    assert_eq!(
        asked.scale_in[0].why.to_string(),
        "raw 3.0000, keeps its min of 1: shrinks for a (raw 6.0000, submitted 1.0 s later), \
         b (raw 9.0000, submitted 2.0 s later)"
    );
    assert!(policy.decide(&frame(41.0, &nodes, &jobs(4))).scale_in.is_empty());
    assert_eq!(started(&policy.decide(&frame(42.0, &nodes, &jobs(1)))), ["a", "b"]);
}
