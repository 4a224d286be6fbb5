use super::*;

/// Jobs in given categories on given nodes, as if earlier frames up to t = 0 had put them there.
/// The last loss of each was 0.5 (M = 1) and its last gain 0.005.
struct Placed {
    policy: SpeCon,
    jobs: Vec<Job>,
}

impl Placed {
    fn new(variant: Variant) -> Self {
        Self { policy: specon(variant, &[]), jobs: Vec::new() }
    }

    fn job(mut self, name: &str, node: &'static str, class: Class) -> Self {
        let mut member = Member::new();
        member.class = class;
        member.observe(0.0, &lost(name, node, 0.5), self.policy.rule);
        member.gain = Some(0.005);
        self.policy.jobs.insert(id(name), member);
        self.jobs.push(job(name, node));
        self
    }

    /// As many jobs on a node: in PC, WC and CC.
    fn jobs(mut self, node: &'static str, counts: [usize; 3]) -> Self {
        let classes = [Class::Progressing, Class::Watching, Class::Converged];
        for (class, count) in classes.into_iter().zip(counts) {
            for n in 0..count {
                self = self.job(&format!("{node}-{}-{n}", class.label()), node, class);
            }
        }
        self
    }

    fn member(&mut self, name: &str) -> &mut Member {
        self.policy.jobs.get_mut(&id(name)).unwrap()
    }

    /// A frame in which the named jobs continued to slow down, and no other was measured.
    fn slowing(&mut self, t: f64, nodes: &[(&str, f64)], names: &[&str]) -> Decision {
        let jobs = self.jobs.iter().map(|job| {
            let slow = names.contains(&job.id.as_str());
            Job { loss: slow.then_some(0.5), ..job.clone() }
        });
        self.policy.decide(&frame(t, nodes, jobs.collect()))
    }
}

/// The moves as `job:from>to`.
fn moves(decision: &Decision) -> Vec<String> {
    decision.migrate.iter().map(|m| format!("{}:{}>{}", m.job, m.from, m.to)).collect()
}

/// The number of jobs on each node when all moves are done.
fn after(placed: &Placed, decision: &Decision, nodes: &[(&str, f64)]) -> Vec<usize> {
    let mut at: BTreeMap<&JobId, &str> =
        placed.jobs.iter().map(|job| (&job.id, job.node.as_deref().unwrap())).collect();
    for m in &decision.migrate {
        assert_eq!(at.insert(&m.job, &m.to), Some(m.from.as_str()));
    }
    nodes.iter().map(|(name, _)| at.values().filter(|node| *node == name).count()).collect()
}

const FOUR: [(&str, f64); 4] = [("w1", 0.9), ("w2", 0.7), ("w3", 0.6), ("w4", 0.9)];

#[test]
fn converged_job_goes_to_the_least_used_lowest_score_node() {
    // 2·2 + 1.5 + 3 = 8.5 against 6, 6 and 9.
    for variant in VARIANTS {
        let mut placed = Placed::new(variant)
            .jobs("w1", [2, 1, 2])
            .job("c", "w1", Class::Converged)
            .jobs("w2", [3, 0, 0])
            .jobs("w3", [1, 2, 1])
            .jobs("w4", [0, 4, 3]);
        let decision = placed.slowing(30.0, &FOUR, &["c"]);
        assert_eq!(moves(&decision), ["c:w1>w3"]);
        assert_eq!(decision.migrate[0].reason, Cause::Converged);
        let reason = match variant {
            Variant::Resolved => "it moves: score 6 of w3 + 1 < 8.5 of its node",
            Variant::Published => "it moves: score 6 of w3 is the lowest, < 8.5 of its node",
        };
        assert!(why(&decision, "c").ends_with(reason), "{}", why(&decision, "c"));
    }
}

#[test]
fn equal_nodes_in_equal_use_are_taken_by_name() {
    let nodes = [("w1", 0.5), ("w3", -0.0), ("w2", 0.0)];
    for variant in VARIANTS {
        let mut placed = Placed::new(variant).jobs("w1", [2, 0, 1]);
        assert_eq!(moves(&placed.slowing(30.0, &nodes, &["w1-CC-0"])), ["w1-CC-0:w1>w2"]);
    }
}

#[test]
fn a_move_that_does_not_improve_anything_is_not_made() {
    // P1, P2: 2 + 1 is not below 3. Published moves wherever the score is lower.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [1, 0, 1]).jobs("w2", [1, 0, 0]);
    let decision = placed.slowing(30.0, &nodes, &["w1-CC-0"]);
    assert!(moves(&decision).is_empty());
    assert!(
        why(&decision, "w1-CC-0").ends_with("it stays: lowest other score 2 + 1 >= 3 of its node")
    );
    let mut placed = Placed::new(Variant::Published).jobs("w1", [2, 0, 1]).jobs("w2", [2, 0, 0]);
    assert_eq!(moves(&placed.slowing(30.0, &nodes, &["w1-CC-0"])), ["w1-CC-0:w1>w2"]);
}

#[test]
fn a_refused_job_asks_again_after_two_intervals() {
    // P6: refused at 30 s, it may ask again at 90 s.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [1, 0, 1]).jobs("w2", [1, 0, 0]);
    drop(placed.slowing(30.0, &nodes, &["w1-CC-0"]));
    placed.jobs.retain(|job| job.id.as_str() != "w2-PC-0");
    let decision = placed.slowing(60.0, &nodes, &["w1-CC-0"]);
    assert_eq!(decision.migrate.first().map(|m| m.reason), Some(Cause::Rebalance));
    placed.member("w1-CC-0").rebalanced = true;
    let decision = placed.slowing(89.0, &nodes, &["w1-CC-0"]);
    assert!(why(&decision, "w1-CC-0").ends_with("refused before, may ask again from t = 90"));
    let decision = placed.slowing(119.0, &nodes, &["w1-CC-0"]);
    assert_eq!(decision.migrate[0].reason, Cause::Converged);
}

#[test]
fn published_a_job_on_one_of_the_lowest_nodes_stays_for_good() {
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Published).jobs("w1", [2, 0, 1]).jobs("w2", [2, 0, 1]);
    let mut reason = |t| {
        // Published asks only for a gain that fell.
        placed.member("w1-CC-0").gain = Some(0.005);
        let decision = placed.slowing(t, &nodes, &["w1-CC-0"]);
        assert!(moves(&decision).is_empty());
        why(&decision, "w1-CC-0")
    };
    assert!(reason(30.0).ends_with("it stays for good: score 5 of its node is among the lowest"));
    assert!(reason(300.0).ends_with("its one move for convergence is used up"));
}

#[test]
fn job_moves_for_convergence_once_even_before_a_frame_shows_it() {
    for variant in VARIANTS {
        let nodes = [("w1", 0.5), ("w2", 0.5)];
        let mut placed = Placed::new(variant).jobs("w1", [2, 0, 1]);
        assert_eq!(moves(&placed.slowing(30.0, &nodes, &["w1-CC-0"])).len(), 1);
        placed.member("w1-CC-0").rebalanced = true;
        placed.member("w1-CC-0").gain = Some(0.005);
        assert!(moves(&placed.slowing(60.0, &nodes, &["w1-CC-0"])).is_empty());
    }
}

#[test]
fn no_job_asks_to_move_when_no_neighbour_would_gain() {
    // S11: one PC or WC job is enough; published, it takes two.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    for (counts, resolved, published) in
        [([0, 0, 2], 0, 0), ([0, 1, 2], 1, 0), ([1, 0, 2], 1, 0), ([1, 1, 1], 1, 1)]
    {
        for (variant, asked) in [(Variant::Resolved, resolved), (Variant::Published, published)] {
            let mut placed = Placed::new(variant).jobs("w1", counts).jobs("w2", [0, 0, 0]);
            let decision = placed.slowing(30.0, &nodes, &["w1-CC-0"]);
            let converged = |m: &&Migration| m.reason == Cause::Converged;
            assert_eq!(decision.migrate.iter().filter(converged).count(), asked, "{counts:?}");
        }
    }
}

#[test]
fn neighbours_are_counted_after_all_jobs_are_classified() {
    // The one neighbour, later in the order of ids, falls into CC in the same frame.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [0, 1, 1]).jobs("w2", [0, 0, 1]);
    let decision = placed.slowing(30.0, &nodes, &["w1-CC-0", "w1-WC-0"]);
    assert_eq!(class(&decision, "w1-WC-0"), "CC");
    assert!(why(&decision, "w1-CC-0").ends_with("it stays: 0 PC or WC jobs on its node < 1"));
}

#[test]
fn requests_of_one_frame_do_not_all_see_the_same_minimum() {
    // P10: scores 7, 0 and 1; then 6, 1 and 1; then 5, 1 and 2.
    let nodes = [("w1", 0.5), ("w2", 0.5), ("w3", 0.1)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [2, 0, 3]).jobs("w3", [0, 0, 1]);
    let asking = ["w1-CC-2", "w1-CC-1", "w1-CC-0"];
    let decision = placed.slowing(30.0, &nodes, &asking);
    assert_eq!(moves(&decision), ["w1-CC-0:w1>w2", "w1-CC-1:w1>w3", "w1-CC-2:w1>w2"]);
}

#[test]
fn request_sees_the_scores_after_the_previous_one() {
    // 1 + 1 < 3.5, but then 2 + 1 is not below 2.5.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [0, 1, 2]).jobs("w2", [0, 0, 1]);
    let decision = placed.slowing(30.0, &nodes, &["w1-CC-0", "w1-CC-1"]);
    assert_eq!(moves(&decision), ["w1-CC-0:w1>w2"]);
}

#[test]
fn without_another_node_a_job_stays() {
    for variant in VARIANTS {
        let mut placed = Placed::new(variant).jobs("w1", [2, 0, 1]);
        let decision = placed.slowing(30.0, &[("w1", 0.5)], &["w1-CC-0"]);
        assert!(moves(&decision).is_empty());
        let refused = placed.member("w1-CC-0").ask_from;
        assert_eq!(refused, (variant == Variant::Resolved).then_some(90.0));
    }
}

#[test]
fn job_may_leave_an_unlisted_node_but_none_goes_there() {
    for variant in VARIANTS {
        let mut placed = Placed::new(variant).jobs("gone", [2, 0, 1]).jobs("w1", [2, 0, 2]);
        let decision = placed.slowing(30.0, &[("w1", 0.5)], &["gone-CC-0", "w1-CC-0"]);
        assert!(moves(&decision).is_empty(), "5 against 6: {:?}", moves(&decision));
        let mut placed = Placed::new(variant).jobs("gone", [2, 0, 1]).jobs("w1", [1, 0, 1]);
        let decision = placed.slowing(30.0, &[("w1", 0.5)], &["gone-CC-0", "w1-CC-0"]);
        assert_eq!(moves(&decision), ["gone-CC-0:gone>w1"]);
    }
}

#[test]
fn job_without_a_node_stays_and_adds_to_no_score() {
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [1, 0, 1]);
    placed.jobs[1].node = None;
    let decision = placed.slowing(30.0, &[("w1", 0.5), ("w2", 0.5)], &["w1-CC-0"]);
    assert!(moves(&decision).is_empty());
    assert!(why(&decision, "w1-CC-0").ends_with("it stays: its node is unknown"));
}

#[test]
fn even_nodes_are_reached_and_left_alone() {
    // R4, R6, R12, R14: in print, none of these moves anything.
    for (counts, expected) in [
        ([4, 0, 0, 0], [1, 1, 1, 1]),
        ([2, 0, 0, 0], [1, 1, 0, 0]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([5, 1, 1, 1], [2, 2, 2, 2]),
        ([2, 1, 1, 1], [2, 1, 1, 1]),
    ] {
        for variant in VARIANTS {
            let nodes = ["w1", "w2", "w3", "w4"];
            let mut placed = nodes
                .into_iter()
                .zip(counts)
                .fold(Placed::new(variant), |placed, (node, jobs)| placed.jobs(node, [0, 0, jobs]));
            let decision = placed.slowing(30.0, &FOUR, &[]);
            assert_eq!(after(&placed, &decision, &FOUR), expected);
            assert!(decision.migrate.iter().all(|m| m.reason == Cause::Rebalance));
        }
    }
}

#[test]
fn the_job_that_converged_last_is_moved_and_ties_go_by_id() {
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    for (times, moved) in [([9.0, 20.0, 10.0], "w1-CC-1"), ([20.0, 20.0, 10.0], "w1-CC-0")] {
        let mut placed = Placed::new(Variant::Resolved).jobs("w1", [0, 0, 3]);
        for (n, t) in times.into_iter().enumerate() {
            placed.member(&format!("w1-CC-{n}")).converged_at = t;
        }
        let decision = placed.slowing(30.0, &nodes, &[]);
        assert_eq!(moves(&decision), [format!("{moved}:w1>w2")]);
        assert!(
            why(&decision, moved)
                .ends_with("it moves to even out: 3 jobs on its node > 0 on w2 + 1")
        );
    }
}

#[test]
fn the_time_of_convergence_is_that_of_the_last_entry_into_cc() {
    // R2.
    let rule = specon(Variant::Resolved, &[]).rule;
    let mut member = Member::new();
    let gains = [0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0];
    for (t, gain) in (0..).map(f64::from).zip(gains) {
        member.judge(t, gain, rule);
    }
    assert_eq!((member.class, member.converged_at), (Class::Converged, 6.0));
}

#[test]
fn the_fullest_node_that_has_a_candidate_gives() {
    // w1 holds most, but none that converged; w3 holds more than w2.
    let nodes = [("w1", 0.5), ("w2", 0.5), ("w3", 0.5), ("w4", 0.5)];
    let mut placed = Placed::new(Variant::Resolved)
        .jobs("w1", [5, 0, 0])
        .jobs("w2", [1, 0, 1])
        .jobs("w3", [2, 0, 1]);
    let decision = placed.slowing(30.0, &nodes, &[]);
    assert_eq!(moves(&decision), ["w3-CC-0:w3>w4"]);
}

#[test]
fn job_is_rebalanced_at_most_once() {
    // R9: the frame still shows it where it was.
    let nodes = [("w1", 0.5), ("w2", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [2, 0, 1]);
    assert_eq!(moves(&placed.slowing(30.0, &nodes, &[])), ["w1-CC-0:w1>w2"]);
    assert!(moves(&placed.slowing(60.0, &nodes, &[])).is_empty());
}

#[test]
fn a_job_that_moved_for_convergence_may_be_rebalanced() {
    // R10.
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [2, 0, 1]);
    placed.member("w1-CC-0").migrated = true;
    let decision = placed.slowing(30.0, &[("w1", 0.5), ("w2", 0.5)], &["w1-CC-0"]);
    assert_eq!(moves(&decision), ["w1-CC-0:w1>w2"]);
    assert_eq!(decision.migrate[0].reason, Cause::Rebalance);
}

#[test]
fn nothing_is_evened_out_in_a_frame_with_a_move_for_convergence() {
    let nodes = [("w1", 0.5), ("w2", 0.5), ("w3", 0.5)];
    let mut placed = Placed::new(Variant::Resolved).jobs("w1", [1, 0, 4]);
    assert_eq!(moves(&placed.slowing(30.0, &nodes, &["w1-CC-3"])), ["w1-CC-3:w1>w2"]);
    assert_eq!(placed.slowing(60.0, &nodes, &[]).migrate.len(), 3);
}

#[test]
fn an_unlisted_node_gives_jobs_and_gets_none() {
    let mut placed = Placed::new(Variant::Resolved).jobs("gone", [0, 0, 3]).jobs("w1", [0, 0, 4]);
    let decision = placed.slowing(30.0, &[("w1", 0.5), ("w2", 0.5)], &[]);
    assert_eq!(after(&placed, &decision, &[("gone", 0.0), ("w1", 0.5), ("w2", 0.5)]), [2, 3, 2]);
}
