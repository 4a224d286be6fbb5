use proptest::prelude::*;

use super::*;
use crate::limiter::tests::{chosen, id, in_force, using, view};
use crate::limiter::{Limiter, View};

/// A job with its own share, as if the policy had chosen that.
fn party(own: f64, ceiling: f64) -> Party {
    let (usage, pressed, appetite) = (None, false, Appetite::Own);
    Party { usage, pressed, own, cut: 0.0, ceiling, weight: own, appetite }
}

/// A node on which the kernel shares fairly what jobs want, up to their caps.
#[derive(Debug)]
struct Node {
    limiter: Limiter,
    caps: Vec<f64>,
    t: f64,
    /// Caps that were worth a write.
    writes: usize,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

impl Node {
    /// The jobs have the shares that were chosen for them, and no use is measured yet.
    fn new(shares: &[f64]) -> Self {
        let mut limiter = Limiter::new(2.0);
        let views: Vec<View> = NAMES.iter().zip(shares).map(|(job, cap)| view(job, *cap)).collect();
        let named: Vec<_> = NAMES.iter().copied().zip(shares.iter().copied()).collect();
        limiter.decided(0.0, &views, &chosen(&named), &[]);
        Self { limiter, caps: shares.to_vec(), t: 0.0, writes: 0 }
    }

    /// The policy chooses other shares, which are in force at once.
    fn decide(&mut self, shares: &[f64]) {
        let views: Vec<View> =
            NAMES.iter().zip(&self.caps).map(|(job, cap)| view(job, *cap)).collect();
        let named: Vec<_> = NAMES.iter().copied().zip(shares.iter().copied()).collect();
        self.t += 1.0;
        self.limiter.decided(self.t, &views, &chosen(&named), &[]);
        let effective = self.limiter.look(self.t, &views);
        for (name, cap) in NAMES.iter().zip(&mut self.caps) {
            *cap = effective[&id(name)].share.get();
        }
    }

    /// A second under these demands, then a look. Returns what each job used.
    fn look(&mut self, demands: &[f64]) -> Vec<f64> {
        let taker = |(demand, cap): (&f64, &f64)| Taker { room: demand.min(*cap), weight: 1.0 };
        let takers: Vec<Taker> = demands.iter().zip(&self.caps).map(taker).collect();
        let used = fill(1.0, &takers);
        let seen = |((job, cap), used): ((&&str, &f64), &f64)| using(job, *cap, *used);
        let views: Vec<View> = NAMES.iter().zip(&self.caps).zip(&used).map(seen).collect();
        self.t += 1.0;
        let effective = self.limiter.look(self.t, &views);
        for change in self.limiter.changes(&effective, in_force(&views)) {
            let at = NAMES.iter().position(|name| *name == change.job.as_str()).unwrap();
            self.caps[at] = effective[&change.job].share.get();
            self.writes += 1;
        }
        used
    }
}

#[test]
fn a_capped_job_beside_an_idle_one_has_nine_tenths_of_the_node_within_two_looks() {
    for (own, other) in [(0.25, 0.75), (0.25, 1.0), (0.05, 0.95), (0.25, 0.25)] {
        let mut node = Node::new(&[own, other]);
        node.look(&[1.0, 0.004]);
        node.look(&[1.0, 0.004]);
        assert!(node.caps[0] >= 0.9, "{own} {other}: {:?}", node.caps);
        assert!(node.look(&[1.0, 0.004])[0] >= 0.9);
    }
}

#[test]
fn an_owner_that_goes_idle_frees_its_share_within_two_looks() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..5).for_each(|_| drop(node.look(&[1.0, 1.0])));
    assert_eq!(node.caps, [0.25, 0.75]);
    // It stops in the middle of a second.
    node.look(&[1.0, 0.4]);
    node.look(&[1.0, 0.0]);
    assert!(node.caps[0] >= 0.9, "{:?}", node.caps);
}

#[test]
fn an_owner_that_wakes_has_its_share_back_at_the_next_look() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..3).for_each(|_| drop(node.look(&[1.0, 0.0])));
    assert!(node.caps[0] >= 0.9);
    // It wakes late in a second, so that little of it shows.
    node.look(&[1.0, 0.1]);
    assert_eq!(node.caps, [0.25, 0.75]);
    assert!((node.look(&[1.0, 1.0])[1] - 0.75).abs() < 1e-9);
    node.look(&[1.0, 1.0]);
    assert_eq!(node.caps, [0.25, 0.75]);
}

#[test]
fn an_owner_that_grows_is_not_held_back() {
    let mut node = Node::new(&[0.1, 0.9]);
    (0..3).for_each(|_| drop(node.look(&[1.0, 0.6])));
    assert!(node.caps[0] > 0.2, "{:?}", node.caps);
    node.look(&[1.0, 0.9]);
    assert!((node.look(&[1.0, 0.9])[1] - 0.9).abs() < 1e-9, "{:?}", node.caps);
}

#[test]
fn what_is_lent_goes_by_share_and_weight() {
    let taker = |own, weight| Party { pressed: true, weight: own * weight, ..party(own, 1.0) };
    let lent = lend(&[taker(0.1, 1.0), taker(0.2, 1.0), taker(0.1, 3.0)], 1.0);
    let caps: Vec<f64> = lent.into_iter().map(|(cap, _)| cap).collect();
    for (cap, expected) in caps.into_iter().zip([0.2, 0.4, 0.4]) {
        assert!((cap - expected).abs() < 1e-9, "{cap} {expected}");
    }
}

#[test]
fn a_job_is_not_lent_more_than_it_may_have() {
    let taker = |ceiling| Party { pressed: true, ..party(0.25, ceiling) };
    let lent = lend(&[taker(0.4), taker(1.0)], 1.0);
    assert!((lent[0].0 - 0.4).abs() < 1e-9);
    assert!((lent[1].0 - 0.6).abs() < 1e-9, "what it may not have goes to the other");
}

#[test]
fn no_cap_is_lowered_for_anothers_sake() {
    let idle = Party { usage: Some(0.0), ..party(0.9, 1.0) };
    let lent = lend(&[idle, Party { pressed: true, ..party(0.5, 1.0) }], 1.0);
    assert!((lent[0].0 - 0.9).abs() < 1e-9);
    assert!((lent[1].0 - (1.0 - HEAD * 0.9 / 1.4)).abs() < 1e-9);
}

#[test]
fn of_a_share_of_whose_use_nothing_is_known_nothing_is_lent() {
    let lent = lend(&[Party { pressed: true, ..party(0.25, 1.0) }, party(0.75, 1.0)], 1.0);
    assert!((lent[0].0 - 0.25).abs() < 1e-9);
}

#[test]
fn where_use_was_not_read_loans_stay() {
    let first = lend(
        &[
            Party { pressed: true, usage: Some(0.25), ..party(0.25, 1.0) },
            Party { usage: Some(0.0), ..party(0.75, 1.0) },
        ],
        1.0,
    );
    let again = lend(
        &[
            Party { appetite: first[0].1, ..party(0.25, 1.0) },
            Party { appetite: first[1].1, ..party(0.75, 1.0) },
        ],
        1.0,
    );
    assert!(first[0].0 > 0.9);
    assert_eq!(again, first);
}

/// On two CPUs, beside two jobs that had 0.26 each and ran in bursts, one that can use 0.87 alone had
/// 0.42: that part of what they left it.
#[test]
fn what_is_taken_from_a_job_is_not_lent_back_before_others_have_shown_what_they_want() {
    let mut node = Node::new(&[1.0, 0.36, 0.17]);
    let bursts = |node: &Node| 0.87 * (1.0 - node.caps[1] - node.caps[2]);
    for _ in 0..4 {
        node.look(&[bursts(&node), 1.0, 1.0]);
    }
    assert_eq!(node.caps, [1.0, 0.36, 0.17], "what it leaves is too little to lend: {node:?}");
    node.decide(&[1.0, 0.17, 0.17]);
    assert_eq!(node.caps, [1.0, 0.17, 0.17]);
    for _ in 0..4 {
        node.look(&[bursts(&node), 1.0, 1.0]);
        assert!(node.caps[1] + node.caps[2] < 0.42, "{node:?}");
    }
    // What it really leaves is lent to them from the second look on.
    node.decide(&[1.0, 0.1, 0.1]);
    node.look(&[0.4, 1.0, 1.0]);
    node.look(&[0.4, 1.0, 1.0]);
    assert!(node.caps[1] + node.caps[2] > 0.5, "{node:?}");
}

#[test]
fn use_that_wavers_moves_no_limit() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..3).for_each(|_| drop(node.look(&[1.0, 0.5])));
    let before = node.writes;
    for second in 0..50_u32 {
        node.look(&[1.0, 0.5 + 0.03 * f64::from(second).sin()]);
    }
    assert_eq!(node.writes, before);
}

#[test]
fn a_job_that_wants_no_more_than_it_got_comes_to_rest() {
    let mut node = Node::new(&[0.25, 0.5, 0.25]);
    let demands = [0.4, 0.05, 0.3];
    (0..4).for_each(|_| drop(node.look(&demands)));
    let before = node.writes;
    for _ in 0..20 {
        let used = node.look(&demands);
        assert!(used.iter().zip(demands).all(|(used, demand)| (used - demand).abs() < 1e-9));
    }
    assert_eq!(node.writes, before);
}

proptest! {
    #[test]
    fn known_demands_are_met_as_far_as_the_node_goes(
        jobs in prop::collection::vec((0.05..=1.0, 0.0..=1.0, 0.1..10.0), 1..=12),
    ) {
        let parties: Vec<Party> =
            jobs.iter().map(|(own, _, weight)| Party { weight: own * weight, ..party(*own, 1.0) }).collect();
        let demands: Vec<f64> = jobs.iter().map(|(_, demand, _)| *demand).collect();
        let caps = caps(&parties, &demands, 1.0);
        let met: f64 = caps.iter().zip(&demands).map(|(cap, demand)| cap.min(*demand)).sum();
        prop_assert!(met >= demands.iter().sum::<f64>().min(1.0) - 1e-9);
        for (cap, party) in caps.iter().zip(&parties) {
            prop_assert!((party.own..=1.0).contains(cap));
        }
    }

    #[test]
    fn steady_demands_are_met_but_for_the_head_room_and_then_nothing_changes(
        jobs in prop::collection::vec((0.05..=1.0, 0.0..=1.0), 1..=6),
    ) {
        let (shares, demands): (Vec<f64>, Vec<f64>) = jobs.into_iter().unzip();
        let mut node = Node::new(&shares);
        (0..30).for_each(|_| drop(node.look(&demands)));
        let before = node.writes;
        let used: f64 = node.look(&demands).iter().sum();
        let wanted = demands.iter().sum::<f64>().min(1.0);
        prop_assert!(used >= wanted * (1.0 - 2.0 * HEAD_OF_USE) - 2.0 * HEAD, "{used} of {wanted}");
        (0..10).for_each(|_| drop(node.look(&demands)));
        prop_assert_eq!(node.writes, before, "{:?}", node.caps);
    }

    #[test]
    fn an_owner_that_wants_its_share_has_it_at_the_second_look(
        shares in prop::collection::vec(0.05..=0.25, 2..=4),
        idle in 0.0..0.02,
    ) {
        let mut node = Node::new(&shares);
        let mut demands = vec![1.0; shares.len()];
        demands[0] = idle;
        (0..4).for_each(|_| drop(node.look(&demands)));
        demands[0] = 1.0;
        node.look(&demands);
        let used = node.look(&demands)[0];
        prop_assert!(used >= shares[0] - 1e-9, "{} of {}", used, shares[0]);
    }
}
