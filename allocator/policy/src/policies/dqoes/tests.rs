use paceline_wire::Targets;
use proptest::prelude::*;

use super::*;
use crate::frame::{Limit, Usage};

fn bare(id: &str) -> Job {
    let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{id}"}}]}}"#)).unwrap();
    frame.jobs.into_iter().next().unwrap()
}

fn asks(o: impl Into<Option<f64>>) -> Targets {
    Targets { batch_latency: o.into(), ..Targets::default() }
}

/// A job whose batches are to take 10 s, and are faster than that by `q`; `None`: no batch.
fn job(id: &str, q: impl Into<Option<f64>>, cpu: f64, limit: f64) -> Job {
    Job {
        batch_latency: q.into().map(|q| 10.0 - q),
        usage: Usage { cpu: Some(cpu), ..Usage::default() },
        limit: Limit { cpu: Some(limit), ..Limit::default() },
        targets: asks(10.0),
        ..bare(id)
    }
}

fn policy(variant: Variant, params: &[(&str, f64)]) -> Dqoes {
    let mut given = Params::default();
    for (name, value) in params {
        given.set(*name, *value);
    }
    Dqoes::new(variant, &given).unwrap()
}

const VARIANTS: [Variant; 2] = [Variant::Resolved, Variant::Published];

fn decide(policy: &mut Dqoes, jobs: &[Job]) -> Decision {
    policy.decide(&Frame { jobs: jobs.to_vec(), ..Frame::default() })
}

/// The answer of a new policy for these jobs.
fn first(variant: Variant, jobs: &[Job]) -> Decision {
    decide(&mut policy(variant, &[]), jobs)
}

fn share(decision: &Decision, id: &str) -> f64 {
    decision.limits[&JobId::new(id).unwrap()].get()
}

/// Class, score and share.
fn seen(decision: &Decision, id: &str) -> (&'static str, Option<f64>, f64) {
    let JobDecision { class, score, .. } = decision.jobs[&JobId::new(id).unwrap()];
    (class, score, share(decision, id))
}

fn why(decision: &Decision, id: &str) -> String {
    decision.jobs[&JobId::new(id).unwrap()].why.to_string()
}

/// The shares of all jobs in the order of their ids, with six decimals.
fn shares(decision: &Decision) -> Vec<String> {
    decision.limits.values().map(|share| format!("{:.6}", share.get())).collect()
}

/// Four jobs: one faster than asked, one as asked, two slower.
fn four() -> [Job; 4] {
    [
        job("a", 5.0, 0.4, 0.5),
        job("b", 0.5, 0.2, 0.3),
        job("c", -5.0, 0.2, 0.2),
        job("d", -2.0, 0.2, 0.2),
    ]
}

#[test]
fn fast_jobs_are_cut_and_slow_ones_get_what_that_frees() {
    // D5, D13: in print, the cut is taken from the limit, and B grows by what G uses.
    let published = first(Variant::Published, &four());
    assert_eq!(shares(&published), ["0.480000", "0.300000", "0.205714", "0.202286"]);
    let resolved = first(Variant::Resolved, &four());
    assert_eq!(shares(&resolved), ["0.384000", "0.300000", "0.211429", "0.204571"]);
    for decision in [published, resolved] {
        let classes: Vec<_> = decision.jobs.values().map(|job| job.class).collect();
        assert_eq!(classes, ["G", "S", "B", "B"]);
        let scores: Vec<_> = decision.jobs.values().map(|job| job.score.unwrap()).collect();
        assert_eq!(scores, [5.0, 0.5, -5.0, -2.0]);
    }
}

#[test]
fn without_a_fast_job_slow_ones_get_the_unused_share() {
    // D13: in print, nothing can grow then.
    let mut jobs = four();
    jobs[0] = job("a", 0.5, 0.2, 0.3);
    assert_eq!(
        shares(&first(Variant::Published, &jobs)),
        ["0.300000", "0.300000", "0.200000", "0.200000"]
    );
    assert_eq!(
        shares(&first(Variant::Resolved, &jobs)),
        ["0.300000", "0.300000", "0.342857", "0.257143"]
    );
}

#[test]
fn the_bounds_of_a_set_belong_to_s() {
    // D9. With α = 1/8, the bounds are exact.
    for variant in VARIANTS {
        let class = |q| {
            let mut policy = policy(variant, &[("alpha", 0.125)]);
            seen(&decide(&mut policy, &[job("a", q, 0.5, 0.5)]), "a").0
        };
        assert_eq!([1.26, 1.25, -1.25, -1.26].map(class), ["G", "S", "S", "B"]);
    }
}

#[test]
fn a_cut_ends_at_the_floor_and_never_raises_a_job() {
    // D12. Two jobs: the floor is 1/8, in print 1/4.
    let cut = |variant, limit| {
        let mut policy = policy(variant, &[("beta", 100.0)]);
        let jobs = [job("a", 9.0, 0.9, limit), job("b", 0.0, 0.0, 1.0)];
        Some(share(&decide(&mut policy, &jobs), "a"))
    };
    assert_eq!(
        [0.8, 0.125, 0.1].map(|limit| cut(Variant::Resolved, limit)),
        [0.125, 0.125, 0.1].map(Some)
    );
    assert_eq!(
        [0.8, 0.25, 0.1].map(|limit| cut(Variant::Published, limit)),
        [0.25, 0.25, 0.1].map(Some)
    );
}

#[test]
fn a_limit_far_above_the_usage_is_cut_to_it_at_once() {
    // D5. n = 2: never from less than 1/4.
    let cut = |cpu| share(&first(Variant::Resolved, &[job("a", 5.0, cpu, 1.0), bare("b")]), "a");
    assert!((cut(0.5) - 0.5 * 0.95).abs() < 1e-12);
    assert!((cut(0.1) - 0.25 * 0.99).abs() < 1e-12);
}

#[test]
fn a_slow_job_gets_the_whole_node_at_most() {
    for (variant, jobs) in [
        (Variant::Resolved, vec![job("a", -5.0, 0.1, 0.9)]),
        (Variant::Published, vec![job("a", -5.0, 0.1, 0.99), job("b", 5.0, 0.9, 0.9)]),
    ] {
        assert_eq!(seen(&first(variant, &jobs), "a"), ("B", Some(-5.0), 1.0));
    }
}

#[test]
fn a_job_without_a_target_is_left_alone_but_counts() {
    // D8. The floor of "a" is 1/(4·2).
    for o in [None, Some(0.0), Some(-1.0), Some(f64::INFINITY)] {
        let jobs = [job("a", 5.0, 0.0, 0.125), Job { targets: asks(o), ..job("b", 9.0, 0.4, 0.3) }];
        let decision = first(Variant::Resolved, &jobs);
        assert_eq!(seen(&decision, "b"), ("-", None, 0.3));
        assert_eq!(share(&decision, "a").to_bits(), 0.125_f64.to_bits());
    }
    let jobs = [job("a", -5.0, 0.4, 0.4), Job { targets: asks(None), ..job("b", 9.0, 0.4, 0.3) }];
    let given = share(&first(Variant::Resolved, &jobs), "a");
    assert!((given - 0.6).abs() < 1e-12, "0.2 of the node is unused");
}

#[test]
fn job_without_a_batch_keeps_its_limit_and_last_quality() {
    // D10: "a" and "c" wait for a batch under their new limits.
    for (variant, expected) in [
        // Of the budget, 1 − 0.9, "d" gets 2/7, as if "c" were raised, too.
        (Variant::Resolved, 0.2 + 0.1 * 2.0 / 7.0),
        (Variant::Published, 0.2 * (1.0 + 2.0 / 7.0 * 0.4 * 0.1)),
    ] {
        let mut policy = policy(variant, &[]);
        decide(&mut policy, &four());
        let now = [
            job("a", None, 0.4, 0.45),
            job("b", None, 0.2, 0.3),
            job("c", None, 0.2, 0.21),
            job("d", -2.0, 0.1, 0.2),
        ];
        let decision = decide(&mut policy, &now);
        assert_eq!(seen(&decision, "a"), ("G", Some(5.0), 0.45));
        assert_eq!(seen(&decision, "b"), ("S", Some(0.5), 0.3));
        assert_eq!(seen(&decision, "c"), ("B", Some(-5.0), 0.21));
        assert!((share(&decision, "d") - expected).abs() < 1e-12);
    }
}

#[test]
fn removed_target_clears_the_set_and_a_changed_one_does_not() {
    for variant in VARIANTS {
        let mut policy = policy(variant, &[]);
        let mut run = |q: Option<f64>, o: Option<f64>| {
            let job = Job { targets: asks(o), ..job("a", q, 0.5, 0.5) };
            let (class, score, _) = seen(&decide(&mut policy, &[job]), "a");
            (class, score)
        };
        assert_eq!(run(None, Some(10.0)), ("-", None), "no batch yet");
        assert_eq!(run(Some(5.0), Some(10.0)), ("G", Some(5.0)));
        assert_eq!(run(None, Some(7.0)), ("G", Some(5.0)));
        assert_eq!(run(None, None), ("-", None));
        assert_eq!(run(None, Some(10.0)), ("-", None));
    }
}

#[test]
fn limit_missing_from_the_frame_is_the_policys_own() {
    let mut policy = policy(Variant::Resolved, &[]);
    let untold = |cpu| {
        let limit = Limit { cpu, applied: Some(0.7), ..Limit::default() };
        [Job { limit, ..job("a", 0.0, 0.5, 1.0) }]
    };
    for (cpu, kept) in
        [(None, 1.0), (Some(0.4), 0.4), (None, 0.4), (Some(0.0), 0.4), (Some(3.0), 1.0)]
    {
        assert_eq!(seen(&decide(&mut policy, &untold(cpu)), "a"), ("S", Some(0.0), kept));
    }
}

/// The intervals of runs over one job "a" and what else is in each frame.
fn intervals(frames: &[Vec<Job>]) -> Vec<f64> {
    let mut policy = policy(Variant::Resolved, &[]);
    frames.iter().map(|jobs| decide(&mut policy, jobs).interval).collect()
}

#[test]
fn the_interval_backs_off_until_jobs_or_targets_change() {
    let one = || vec![job("a", 0.0, 0.5, 0.5)];
    let settled = || vec![one(), one(), one(), one()];
    assert_eq!(intervals(&settled()), [15.0, 15.0, 15.0, 30.0]);
    let other_target = vec![Job { targets: asks(11.0), ..job("a", 0.0, 0.5, 0.5) }];
    let no_target = vec![Job { targets: asks(-1.0), ..job("a", 0.0, 0.5, 0.5) }];
    let two = vec![job("a", 0.0, 0.5, 0.5), job("b", 0.0, 0.5, 0.5)];
    for change in [other_target, no_target, two, vec![job("b", 0.0, 0.5, 0.5)], Vec::new()] {
        assert_eq!(intervals(&[settled(), vec![change]].concat())[4..], [15.0]);
    }
    let mut both = settled();
    for jobs in &mut both {
        jobs.push(job("b", -2.0, 0.5, 0.5));
    }
    assert_eq!(intervals(&[both, vec![one()]].concat())[3..], [30.0, 15.0], "one went");
    let slow = vec![job("a", -2.0, 0.5, 0.5)];
    assert_eq!(intervals(&[settled(), vec![slow]].concat())[4..], [15.0], "halved: S fell");
}

#[test]
fn invalid_targets_count_as_the_same_target() {
    let without = |o| vec![Job { targets: asks(o), ..job("a", 0.0, 0.5, 0.5) }];
    let frames = [None, Some(0.0), None, Some(-2.0)].map(without);
    assert_eq!(intervals(&frames), [15.0, 15.0, 15.0, 30.0]);
}

#[test]
fn node_without_jobs_is_checked_every_base_interval() {
    assert_eq!(intervals(&vec![Vec::new(); 6]), [15.0; 6]);
}

#[test]
fn reasons_state_the_figures_they_compare() {
    let decision = first(Variant::Resolved, &four());
    assert_eq!(
        why(&decision, "a"),
        "q 5.0000 > alpha o 1.0000: faster than asked, \
         min(limit 0.5000, max(floor 0.0625, 0.4000 x 0.9600))"
    );
    assert_eq!(why(&decision, "b"), "q 0.5000 within alpha o 1.0000: as asked, limit kept");
    assert_eq!(
        why(&decision, "c"),
        "q -5.0000 < -alpha o -1.0000: slower than asked, \
         min(1, limit 0.2000 + 0.0114 of budget 0.0160)"
    );
    let decision = first(Variant::Published, &four());
    assert_eq!(
        why(&decision, "d"),
        "q -2.0000 < -alpha o -1.0000: slower than asked, min(1, limit 0.2000 x 1.0114)"
    );
}

#[test]
fn bad_parameters_are_named() {
    let error = |name: &str, value| {
        let mut given = Params::default();
        given.set(name, value);
        Dqoes::new(Variant::Resolved, &given).unwrap_err().to_string()
    };
    assert_eq!(
        error("interval", 0.0),
        r#"invalid parameter interval "0" of dqoes: expected a number above 0"#
    );
    assert_eq!(
        error("hold", 2.0),
        r#"unknown parameter "hold" of dqoes: expected one of alpha, beta, interval"#
    );
}

mod properties;
