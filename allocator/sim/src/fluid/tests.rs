use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use paceline_policy::unit::count;

const NEVER: f64 = f64::INFINITY;

pub(super) fn demand(weight: f64, cap: f64) -> Demand {
    Demand {
        weight,
        cap,
        limited: cap < 1.0,
        speed: 1.0,
        fixed_per_work: 0.0,
        batch: 1.0,
        contention: None,
    }
}

/// Runs all jobs to their ends, and returns when each ended.
fn run_out(node: &mut Fluid) -> Vec<(Index, f64)> {
    let mut done = Vec::new();
    while let Some((at, job)) = node.next() {
        node.advance(at);
        node.reached(job, NEVER);
        node.remove(job).unwrap();
        done.push((job, at));
    }
    done
}

fn shares(node: &Fluid) -> Vec<f64> {
    node.jobs().map(|job| node.share_of(job)).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn one_job_ends_at_exactly_its_work_over_its_capacity() {
    for cap in [1.0, 0.5, 0.125] {
        let mut node = Fluid::new(0.0);
        node.insert(0, demand(1.0, cap), 40.0);
        assert_eq!(run_out(&mut node), [(0, 40.0 / cap)]);
    }
}

#[test]
fn two_equal_jobs_end_together_at_twice_the_time() {
    let mut node = Fluid::new(0.0);
    node.insert(0, demand(1.0, 1.0), 30.0);
    node.insert(1, demand(1.0, 1.0), 30.0);
    assert_eq!(run_out(&mut node), [(0, 60.0), (1, 60.0)]);
}

#[test]
fn processor_sharing_matches_the_closed_form() {
    // 10 s alone, then two: 20 of the first are left, and the second ends its 10 after 20 s; then
    // the first has 10 left.
    let mut node = Fluid::new(0.0);
    node.insert(0, demand(1.0, 1.0), 30.0);
    node.advance(10.0);
    node.insert(1, demand(1.0, 1.0), 10.0);
    assert_eq!(run_out(&mut node), [(1, 30.0), (0, 40.0)]);

    // n equal shares from the start: job k of growing works ends at Σ (n − i + 1)(w_i − w_(i−1)).
    let works = [3.0, 5.0, 6.0, 10.0];
    let mut node = Fluid::new(0.0);
    for (job, work) in works.into_iter().enumerate() {
        node.insert(job, demand(1.0, 1.0), work);
    }
    let (mut at, mut before) = (0.0, 0.0);
    for (job, end) in run_out(&mut node) {
        at += count(works.len() - job) * (works[job] - before);
        before = works[job];
        assert!(close(end, at), "{job}: {end} {at}");
    }
}

#[test]
fn a_cap_binds_exactly_and_the_rest_is_shared() {
    let mut node = Fluid::new(0.0);
    node.insert(0, demand(1.0, 0.25), NEVER);
    node.insert(1, demand(1.0, 1.0), NEVER);
    node.insert(2, demand(1.0, 1.0), NEVER);
    assert_eq!(shares(&node), [0.25, 0.375, 0.375]);
    node.set(0, demand(1.0, 0.5));
    let third = 1.0 / 3.0;
    assert_eq!(shares(&node), [third; 3], "it does not bind");
    node.advance(8.0);
    let tally = node.tally(0).unwrap();
    assert!(close(tally.cpu, 8.0 / 3.0) && close(tally.throttled, 0.0), "{tally:?}");
    node.set(0, demand(1.0, 0.25));
    node.advance(12.0);
    let tally = node.tally(0).unwrap();
    assert!(close(tally.cpu, 8.0 / 3.0 + 1.0) && close(tally.throttled, 4.0), "{tally:?}");
}

#[test]
fn weights_split_exactly() {
    let mut node = Fluid::new(0.0);
    for (job, weight) in [1.0, 2.0, 5.0].into_iter().enumerate() {
        node.insert(job, demand(weight, 1.0), NEVER);
    }
    assert_eq!(shares(&node), [0.125, 0.25, 0.625]);
    // The heaviest is capped; the others share the rest, one to two.
    node.set(2, demand(5.0, 0.4));
    let shares = shares(&node);
    assert!(close(shares[0], 0.2) && close(shares[1], 0.4) && close(shares[2], 0.4), "{shares:?}");
}

#[test]
fn background_leaves_less_to_share() {
    let mut node = Fluid::new(0.0).with_background(0.25);
    node.insert(0, demand(1.0, 1.0), 30.0);
    node.insert(1, demand(1.0, 0.25), 10.0);
    assert_eq!(shares(&node), [0.5, 0.25]);
    assert_eq!(run_out(&mut node), [(1, 40.0), (0, 40.0 + 10.0 / 0.75)]);
    assert!(close(node.used(), 40.0) && close(node.wasted(), 0.0), "{node:?}");
}

#[test]
fn neighbours_slow_each_other_down_by_their_contention() {
    let mut node = Fluid::new(0.05);
    node.insert(0, demand(1.0, 0.5), 10.0);
    node.insert(1, demand(1.0, 0.5), 10.0);
    let (first, _) = node.next().unwrap();
    assert!(close(first, 21.0), "{first}");
    node.advance(10.0);
    node.remove(1);
    let (end, _) = node.next().unwrap();
    assert!(close(end, 10.0 + (10.0 - 5.0 / 1.05) / 0.5), "{end}");
}

#[test]
fn job_uses_its_own_contention() {
    let mut node = Fluid::new(0.05);
    let own = |own: f64, cap: f64| Demand { contention: Some(own), ..demand(1.0, cap) };
    for (job, demand) in [own(0.3, 1.0), demand(1.0, 1.0), own(0.0, 0.2)].into_iter().enumerate() {
        node.insert(job, demand, 10.0);
    }
    let rates = |node: &Fluid| [0, 1, 2].map(|job| node.rate_of(job));
    let expected = |shares: [f64; 3], contentions: [f64; 3]| {
        let others = 2.0 - 2.0 * shares.iter().map(|share| share * share).sum::<f64>();
        [0, 1, 2].map(|job: usize| shares[job] / (1.0 + contentions[job] * others))
    };
    let before = expected([0.4, 0.4, 0.2], [0.3, 0.05, 0.0]);
    assert!(rates(&node).iter().zip(before).all(|(a, b)| close(*a, b)), "{node:?}");
    node.advance(10.0);
    // For the job at its cap only the contention changes; for the other one the share.
    node.set(2, own(0.6, 0.2));
    node.set(1, demand(1.0, 0.2));
    let after = expected([0.6, 0.2, 0.2], [0.3, 0.05, 0.6]);
    assert!(rates(&node).iter().zip(after).all(|(a, b)| close(*a, b)), "{node:?}");
    node.advance(20.0);
    for (job, (before, after)) in before.into_iter().zip(after).enumerate() {
        let tally = node.tally(job).unwrap();
        assert!(close(tally.work, 10.0 * (before + after)), "{job}: {tally:?}");
    }
}

#[test]
fn barely_running_neighbour_barely_slows_others() {
    let mut node = Fluid::new(0.5);
    let demands = [demand(1.0, 0.1), demand(2.0, 1.0), demand(1.0, 1.0), demand(1.0, 0.15)];
    for (job, demand) in demands.into_iter().enumerate() {
        node.insert(job, demand, NEVER);
    }
    // Two jobs at their caps beside two that share the rest, two to one. A removed job leaves no
    // effect.
    for (gone, shares) in [
        (None, vec![0.1, 0.5, 0.25, 0.15]),
        (Some(3), vec![0.1, 0.6, 0.3]),
        (Some(2), vec![0.1, 0.9]),
    ] {
        gone.map(|job| node.remove(job));
        let alike = shares.iter().map(|share| share * share).sum::<f64>();
        let rate = shares[1] / (1.0 + 0.5 * 2.0 * (1.0 - alike));
        assert!(close(node.rate_of(1), rate), "{shares:?}: {}, not {rate}", node.rate_of(1));
    }
    // A job beside one with almost no share is almost as fast as alone.
    node.set(0, demand(1.0, 0.001));
    assert!((node.rate_of(1) - 0.999).abs() < 2e-3, "{node:?}");
}

#[test]
fn batch_takes_its_fixed_part_and_the_rest_by_share() {
    // 3.4 + 2.82/l seconds, of which ten share the node: 31.6.
    let mut node = Fluid::new(0.0);
    let model = Demand { fixed_per_work: 3.4 / 2.82, batch: 2.82, ..demand(1.0, 1.0) };
    for job in 0..10 {
        node.insert(job, model, NEVER);
    }
    node.advance(100.0);
    let tally = node.tally(4).unwrap();
    assert_eq!(tally.batches, 3);
    assert!(close(tally.batch_seconds, 3.0 * 31.6), "{tally:?}");
    // Half of a batch under one cap, half under another: the batch takes its true time, not that of
    // the last speed.
    let mut node = Fluid::new(0.0);
    node.insert(0, Demand { batch: 10.0, ..demand(1.0, 0.5) }, NEVER);
    node.advance(10.0);
    node.set(0, Demand { batch: 10.0, ..demand(1.0, 1.0) });
    node.advance(40.0);
    let tally = node.tally(0).unwrap();
    assert_eq!((tally.batches, tally.batch_seconds), (3, 35.0));
}

/// Something that happens to a node.
#[derive(Clone, Debug)]
enum Act {
    Insert(f64, f64, f64),
    Remove(usize),
    Cap(usize, f64),
    Pass(f64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let number = |low: u32, high: u32| (low..high).prop_map(|n| f64::from(n) / 100.0);
    let act = prop_oneof![
        (number(1, 400), number(1, 101), number(1, 500)).prop_map(|(w, c, g)| Act::Insert(w, c, g)),
        (0..12_usize).prop_map(Act::Remove),
        ((0..12_usize), number(1, 101)).prop_map(|(job, cap)| Act::Cap(job, cap)),
        number(1, 300).prop_map(Act::Pass),
    ];
    prop::collection::vec(act, 1..60)
}

/// The expected shares, by searching for the level.
fn water(demands: &[Demand]) -> Vec<f64> {
    let at = |level: f64| demands.iter().map(move |p| p.cap.min(p.weight * level));
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if at(middle).sum::<f64>() > 1.0 { high = middle } else { low = middle }
    }
    at(low).collect()
}

#[test]
fn half_the_speed_doubles_time_and_cpu() {
    let mut node = Fluid::new(0.2).with_speed_profile(SpeedProfile::new([(0.0, 0.5)]));
    node.insert(0, Demand { fixed_per_work: 1.0, ..demand(1.0, 1.0) }, 3.0);
    assert!(close(node.rate_of(0), 0.25), "a batch's own time is longer, too: {node:?}");
    node.advance(4.0);
    assert_eq!(node.tally(0).map(|tally| (tally.work, tally.cpu)), Some((1.0, 4.0)));
    assert_eq!(run_out(&mut node), [(0, 12.0)]);
}

proptest! {
    #[test]
    fn jobs_on_a_node_of_varying_speed_end_by_work_done(
        jobs in prop::collection::vec((0.1..4.0_f64, 0.05..1.0_f64, 0.0..2.0_f64, 0.1..9.0_f64), 1..6),
        speeds in prop::collection::vec((0.0..30.0_f64, 0.2..3.0_f64), 0..6),
    ) {
        let speed_profile = SpeedProfile::new(speeds);
        let mut usual = Fluid::new(0.3);
        let mut varying = Fluid::new(0.3).with_speed_profile(speed_profile.clone());
        for (job, (weight, cap, fixed_per_work, goal)) in jobs.into_iter().enumerate() {
            let demand = Demand { fixed_per_work, ..demand(weight, cap) };
            usual.insert(job, demand, goal);
            varying.insert(job, demand, goal);
        }
        for (job, at) in run_out(&mut usual) {
            let (then, next) = varying.next().unwrap();
            let both = close(speed_profile.end(0.0, at), then);
            prop_assert!(both, "{job} and {next}: {at} at the usual speed, {then}");
            varying.advance(then);
            varying.reached(next, NEVER);
            varying.remove(next);
        }
    }

    #[test]
    fn cpu_is_conserved_and_filled_like_water_whatever_happens(acts in acts()) {
        let mut node = Fluid::new(0.0);
        let mut demands: BTreeMap<Index, Demand> = BTreeMap::new();
        let (mut now, mut used, mut gone) = (0.0, 0.0, 0.0);
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                Act::Insert(weight, cap, goal) => {
                    demands.insert(number, demand(weight, cap));
                    node.insert(number, demand(weight, cap), goal);
                }
                Act::Remove(at) => {
                    if let Some(job) = demands.keys().nth(at).copied() {
                        demands.remove(&job);
                        gone += node.remove(job).unwrap().cpu;
                    }
                }
                Act::Cap(at, cap) => {
                    if let Some(job) = demands.keys().nth(at).copied() {
                        let demand = Demand { cap, limited: true, ..demands[&job] };
                        demands.insert(job, demand);
                        node.set(job, demand);
                    }
                }
                Act::Pass(seconds) => {
                    let until = now + seconds;
                    while let Some((at, job)) = node.next().filter(|(at, _)| *at <= until) {
                        prop_assert!(at >= now);
                        used += node.in_use() * (at - now);
                        now = at;
                        node.advance(at);
                        node.reached(job, NEVER);
                        let tally = node.remove(job).unwrap();
                        prop_assert!(close(tally.cpu, tally.work), "{tally:?}");
                        gone += tally.cpu;
                        demands.remove(&job);
                    }
                    used += node.in_use() * (until - now);
                    node.advance(until);
                    now = until;
                }
            }
            let expected = water(&demands.values().copied().collect::<Vec<_>>());
            for (job, share) in demands.keys().zip(&expected) {
                prop_assert!((node.share_of(*job) - share).abs() < 1e-6);
            }
            let demand: f64 = demands.values().map(|demand| demand.cap).sum();
            prop_assert!(close(node.in_use(), demand.min(1.0)), "{} {demand}", node.in_use());
            let held: f64 = demands.keys().map(|job| node.tally(*job).unwrap().cpu).sum();
            prop_assert!(close(gone + held, used) && close(node.used(), used));
        }
    }
}
