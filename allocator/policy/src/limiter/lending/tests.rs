use proptest::prelude::*;

use super::*;
use crate::limiter::tests::{chosen, id, in_force, using, view};
use crate::limiter::{Limiter, View};

/// A job with its own share, as chosen by a policy.
fn borrower(own: f64, ceiling: f64) -> Borrower {
    let (usage, pressed, demand) = (None, false, Demand::Own);
    Borrower { usage, pressed, own, cut: 0.0, ceiling, weight: own, demand }
}

/// A node on which the kernel shares the CPU fairly, up to demands and caps.
#[derive(Debug)]
struct Node {
    limiter: Limiter,
    caps: Vec<f64>,
    t: f64,
    /// The number of caps written.
    writes: usize,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

impl Node {
    /// The jobs have the chosen shares, and no usage is measured yet.
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
        let effective = self.limiter.tick(self.t, &views);
        for (name, cap) in NAMES.iter().zip(&mut self.caps) {
            *cap = effective[&id(name)].share.get();
        }
    }

    /// A second under these demands, then a tick. Returns the usage of each job.
    fn tick(&mut self, demands: &[f64]) -> Vec<f64> {
        let taker = |(demand, cap): (&f64, &f64)| Taker { room: demand.min(*cap), weight: 1.0 };
        let takers: Vec<Taker> = demands.iter().zip(&self.caps).map(taker).collect();
        let used = fill(1.0, &takers);
        let seen = |((job, cap), used): ((&&str, &f64), &f64)| using(job, *cap, *used);
        let views: Vec<View> = NAMES.iter().zip(&self.caps).zip(&used).map(seen).collect();
        self.t += 1.0;
        let effective = self.limiter.tick(self.t, &views);
        for change in self.limiter.changes(&effective, in_force(&views)) {
            let at = NAMES.iter().position(|name| *name == change.job.as_str()).unwrap();
            self.caps[at] = effective[&change.job].share.get();
            self.writes += 1;
        }
        used
    }
}

#[test]
fn capped_job_beside_an_idle_one_gets_90_percent_in_two_ticks() {
    for (own, other) in [(0.25, 0.75), (0.25, 1.0), (0.05, 0.95), (0.25, 0.25)] {
        let mut node = Node::new(&[own, other]);
        node.tick(&[1.0, 0.004]);
        node.tick(&[1.0, 0.004]);
        assert!(node.caps[0] >= 0.9, "{own} {other}: {:?}", node.caps);
        assert!(node.tick(&[1.0, 0.004])[0] >= 0.9);
    }
}

#[test]
fn idle_lender_frees_its_share_within_two_ticks() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..5).for_each(|_| drop(node.tick(&[1.0, 1.0])));
    assert_eq!(node.caps, [0.25, 0.75]);
    // It becomes idle in the middle of a second.
    node.tick(&[1.0, 0.4]);
    node.tick(&[1.0, 0.0]);
    assert!(node.caps[0] >= 0.9, "{:?}", node.caps);
}

#[test]
fn busy_lender_gets_its_share_back_at_the_next_tick() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..3).for_each(|_| drop(node.tick(&[1.0, 0.0])));
    assert!(node.caps[0] >= 0.9);
    // It becomes busy late in a second, so that its usage rises little.
    node.tick(&[1.0, 0.1]);
    assert_eq!(node.caps, [0.25, 0.75]);
    assert!((node.tick(&[1.0, 1.0])[1] - 0.75).abs() < 1e-9);
    node.tick(&[1.0, 1.0]);
    assert_eq!(node.caps, [0.25, 0.75]);
}

#[test]
fn growing_lender_is_not_held_back() {
    let mut node = Node::new(&[0.1, 0.9]);
    (0..3).for_each(|_| drop(node.tick(&[1.0, 0.6])));
    assert!(node.caps[0] > 0.2, "{:?}", node.caps);
    node.tick(&[1.0, 0.9]);
    assert!((node.tick(&[1.0, 0.9])[1] - 0.9).abs() < 1e-9, "{:?}", node.caps);
}

#[test]
fn loans_are_divided_by_share_and_weight() {
    let taker =
        |own, weight| Borrower { pressed: true, weight: own * weight, ..borrower(own, 1.0) };
    let lent = lend(&[taker(0.1, 1.0), taker(0.2, 1.0), taker(0.1, 3.0)], 1.0);
    let caps: Vec<f64> = lent.into_iter().map(|(cap, _)| cap).collect();
    for (cap, expected) in caps.into_iter().zip([0.2, 0.4, 0.4]) {
        assert!((cap - expected).abs() < 1e-9, "{cap} {expected}");
    }
}

#[test]
fn a_job_is_not_lent_more_than_it_may_have() {
    let taker = |ceiling| Borrower { pressed: true, ..borrower(0.25, ceiling) };
    let lent = lend(&[taker(0.4), taker(1.0)], 1.0);
    assert!((lent[0].0 - 0.4).abs() < 1e-9);
    assert!((lent[1].0 - 0.6).abs() < 1e-9, "the rest goes to the other job");
}

#[test]
fn lending_lowers_no_cap() {
    let idle = Borrower { usage: Some(0.0), ..borrower(0.9, 1.0) };
    let lent = lend(&[idle, Borrower { pressed: true, ..borrower(0.5, 1.0) }], 1.0);
    assert!((lent[0].0 - 0.9).abs() < 1e-9);
    assert!((lent[1].0 - (1.0 - HEADROOM * 0.9 / 1.4)).abs() < 1e-9);
}

#[test]
fn share_with_unknown_usage_is_not_lent() {
    let lent = lend(&[Borrower { pressed: true, ..borrower(0.25, 1.0) }, borrower(0.75, 1.0)], 1.0);
    assert!((lent[0].0 - 0.25).abs() < 1e-9);
}

#[test]
fn where_use_was_not_read_loans_stay() {
    let first = lend(
        &[
            Borrower { pressed: true, usage: Some(0.25), ..borrower(0.25, 1.0) },
            Borrower { usage: Some(0.0), ..borrower(0.75, 1.0) },
        ],
        1.0,
    );
    let again = lend(
        &[
            Borrower { demand: first[0].1, ..borrower(0.25, 1.0) },
            Borrower { demand: first[1].1, ..borrower(0.75, 1.0) },
        ],
        1.0,
    );
    assert!(first[0].0 > 0.9);
    assert_eq!(again, first);
}

/// Measured on two CPUs: beside two bursty jobs with 0.26 each, a job that can use 0.87 alone used 0.42.
/// That is 0.87 of the CPU that they left.
#[test]
fn cut_share_is_not_lent_back_before_demand_is_measured() {
    let mut node = Node::new(&[1.0, 0.36, 0.17]);
    let bursts = |node: &Node| 0.87 * (1.0 - node.caps[1] - node.caps[2]);
    for _ in 0..4 {
        node.tick(&[bursts(&node), 1.0, 1.0]);
    }
    assert_eq!(node.caps, [1.0, 0.36, 0.17], "its unused share is too small to lend: {node:?}");
    node.decide(&[1.0, 0.17, 0.17]);
    assert_eq!(node.caps, [1.0, 0.17, 0.17]);
    for _ in 0..4 {
        node.tick(&[bursts(&node), 1.0, 1.0]);
        assert!(node.caps[1] + node.caps[2] < 0.42, "{node:?}");
    }
    // CPU that it really leaves unused is lent from the second tick on.
    node.decide(&[1.0, 0.1, 0.1]);
    node.tick(&[0.4, 1.0, 1.0]);
    node.tick(&[0.4, 1.0, 1.0]);
    assert!(node.caps[1] + node.caps[2] > 0.5, "{node:?}");
}

#[test]
fn fluctuating_usage_changes_no_limit() {
    let mut node = Node::new(&[0.25, 0.75]);
    (0..3).for_each(|_| drop(node.tick(&[1.0, 0.5])));
    let before = node.writes;
    for second in 0..50_u32 {
        node.tick(&[1.0, 0.5 + 0.03 * f64::from(second).sin()]);
    }
    assert_eq!(node.writes, before);
}

#[test]
fn job_with_satisfied_demand_gets_no_further_writes() {
    let mut node = Node::new(&[0.25, 0.5, 0.25]);
    let demands = [0.4, 0.05, 0.3];
    (0..4).for_each(|_| drop(node.tick(&demands)));
    let before = node.writes;
    for _ in 0..20 {
        let used = node.tick(&demands);
        assert!(used.iter().zip(demands).all(|(used, demand)| (used - demand).abs() < 1e-9));
    }
    assert_eq!(node.writes, before);
}

proptest! {
    #[test]
    fn known_demands_are_met_as_far_as_the_node_goes(
        jobs in prop::collection::vec((0.05..=1.0, 0.0..=1.0, 0.1..10.0), 1..=12),
    ) {
        let borrowers: Vec<Borrower> =
            jobs.iter().map(|(own, _, weight)| Borrower { weight: own * weight, ..borrower(*own, 1.0) }).collect();
        let demands: Vec<f64> = jobs.iter().map(|(_, demand, _)| *demand).collect();
        let caps = caps(&borrowers, &demands, 1.0);
        let met: f64 = caps.iter().zip(&demands).map(|(cap, demand)| cap.min(*demand)).sum();
        prop_assert!(met >= demands.iter().sum::<f64>().min(1.0) - 1e-9);
        for (cap, borrower) in caps.iter().zip(&borrowers) {
            prop_assert!((borrower.own..=1.0).contains(cap));
        }
    }

    #[test]
    fn steady_demands_are_met_except_headroom_and_limits_settle(
        jobs in prop::collection::vec((0.05..=1.0, 0.0..=1.0), 1..=6),
    ) {
        let (shares, demands): (Vec<f64>, Vec<f64>) = jobs.into_iter().unzip();
        let mut node = Node::new(&shares);
        (0..30).for_each(|_| drop(node.tick(&demands)));
        let before = node.writes;
        let used: f64 = node.tick(&demands).iter().sum();
        let wanted = demands.iter().sum::<f64>().min(1.0);
        prop_assert!(used >= wanted * (1.0 - 2.0 * HEADROOM_OF_USAGE) - 2.0 * HEADROOM, "{used} of {wanted}");
        (0..10).for_each(|_| drop(node.tick(&demands)));
        prop_assert_eq!(node.writes, before, "{:?}", node.caps);
    }

    #[test]
    fn lender_that_needs_its_share_has_it_at_the_second_tick(
        shares in prop::collection::vec(0.05..=0.25, 2..=4),
        idle in 0.0..0.02,
    ) {
        let mut node = Node::new(&shares);
        let mut demands = vec![1.0; shares.len()];
        demands[0] = idle;
        (0..4).for_each(|_| drop(node.tick(&demands)));
        demands[0] = 1.0;
        node.tick(&demands);
        let used = node.tick(&demands)[0];
        prop_assert!(used >= shares[0] - 1e-9, "{} of {}", used, shares[0]);
    }
}
