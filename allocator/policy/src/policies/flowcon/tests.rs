use proptest::prelude::*;

use super::*;
use crate::frame::{Limit, Usage};

/// A job with a loss and a usage, and no other values.
fn job(id: &str, loss: impl Into<Option<f64>>, cpu: impl Into<Option<f64>>) -> Job {
    Job { loss: loss.into(), usage: Usage { cpu: cpu.into(), ..Usage::default() }, ..bare(id) }
}

fn bare(id: &str) -> Job {
    let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{id}"}}]}}"#)).unwrap();
    frame.jobs.into_iter().next().unwrap()
}

fn policy(variant: Variant, params: &[(&str, f64)]) -> FlowCon {
    let mut given = Params::default();
    for (name, value) in params {
        given.set(*name, *value);
    }
    FlowCon::new(variant, &given).unwrap()
}

/// Runs frames 10 s apart, each telling the policy its own last choice, and returns the last answer.
fn run(policy: &mut FlowCon, from: f64, frames: &[Vec<Job>]) -> Decision {
    let mut t = from;
    let mut last = None;
    for jobs in frames {
        last = Some(policy.decide(&Frame { t, jobs: jobs.clone(), ..Frame::default() }));
        t += 10.0;
    }
    last.unwrap()
}

/// Losses (M = 1) that give a job growth `g` over 10 s at half the machine.
fn falling(id: &str, start: f64, g: f64, frame: u32) -> Job {
    let loss = start - g * 0.5 * 10.0 * f64::from(frame);
    Job { loss_max: Some(1.0), ..job(id, loss, 0.5) }
}

fn share(decision: &Decision, id: &str) -> f64 {
    decision.limits[&JobId::new(id).unwrap()].get()
}

fn class(decision: &Decision, id: &str) -> &'static str {
    decision.jobs[&JobId::new(id).unwrap()].class
}

/// Puts jobs into the given lists with the given growth, as if earlier frames had.
fn placed(variant: Variant, alpha: f64, jobs: &[(&str, List, Option<f64>)]) -> FlowCon {
    let mut policy = policy(variant, &[("alpha", alpha)]);
    for (id, list, growth) in jobs {
        let member = Member { list: *list, growth: *growth, ..Member::new() };
        policy.jobs.insert(JobId::new(*id).unwrap(), member);
    }
    policy
}

/// A frame in which none of the jobs is measured.
fn unmeasured(ids: &[&str]) -> Frame {
    Frame { t: 100.0, jobs: ids.iter().map(|id| bare(id)).collect(), ..Frame::default() }
}

#[test]
fn paper_example_limits_vae_for_the_newcomer_mnist() {
    // Section 4.1: VAE is completing when MNIST arrives: 0.25 for VAE, all for MNIST (F1, F16).
    let mut policy = placed(
        Variant::Resolved,
        0.05,
        &[("vae", List::Completing, Some(0.0144)), ("mnist", List::New, None)],
    );
    let decision = policy.decide(&unmeasured(&["vae", "mnist"]));
    // 0.0144/(0.0144 + 0.05) = 0.2236 lies below 1/(2·2).
    assert!((share(&decision, "vae") - 0.25).abs() < 1e-12);
    assert!((share(&decision, "mnist") - 1.0).abs() < 1e-12);
    assert_eq!(decision.jobs[&JobId::new("mnist").unwrap()].score, Some(0.05));
}

#[test]
fn published_leaves_the_newcomer_out_of_the_sum() {
    let mut policy = placed(
        Variant::Published,
        0.05,
        &[("vae", List::Completing, Some(0.0144)), ("mnist", List::New, None)],
    );
    let decision = policy.decide(&unmeasured(&["vae", "mnist"]));
    assert!((share(&decision, "vae") - 1.0).abs() < 1e-12);
}

#[test]
fn growing_watched_and_completing_jobs_get_their_shares() {
    // n = 3, α = 0.03, β = 2, lists NL, NL, WL before, G = 0.06, 0.01, 0.005.
    let mut policy = policy(Variant::Resolved, &[("alpha", 0.03)]);
    let before = [("a", 1.0), ("b", 1.0), ("c", 1.0)].map(|(id, _)| falling(id, 1.0, 0.0, 0));
    run(&mut policy, 0.0, &[before.to_vec()]);
    policy.jobs.get_mut(&JobId::new("c").unwrap()).unwrap().list = List::Watching;
    let now =
        vec![falling("a", 1.0, 0.06, 1), falling("b", 1.0, 0.01, 1), falling("c", 1.0, 0.005, 1)];
    let decision = run(&mut policy, 10.0, &[now]);
    assert_eq!(["a", "b", "c"].map(|id| class(&decision, id)), ["NL", "WL", "CL"]);
    assert!((share(&decision, "a") - 0.8).abs() < 1e-9);
    assert!((share(&decision, "b") - 1.0).abs() < 1e-9, "a watched job keeps its limit");
    assert!((share(&decision, "c") - 1.0 / 6.0).abs() < 1e-9);
}

#[test]
fn a_growing_job_never_gets_less_than_an_equal_share() {
    // F19: G = 0.04, 0.5, 0.002. In print, the first gets less than the completing third.
    let jobs = [
        ("a", List::New, Some(0.04)),
        ("b", List::New, Some(0.5)),
        ("c", List::Completing, Some(0.002)),
    ];
    let shares = |variant| {
        let decision = placed(variant, 0.03, &jobs).decide(&unmeasured(&["a", "b", "c"]));
        ["a", "b", "c"].map(|id| format!("{:.4}", share(&decision, id)))
    };
    assert_eq!(shares(Variant::Resolved), ["0.3333", "0.9225", "0.1667"]);
    assert_eq!(shares(Variant::Published), ["0.0738", "0.9225", "0.1667"]);
}

#[test]
fn all_jobs_completing_lifts_limits_and_doubles_the_interval() {
    let mut policy = placed(
        Variant::Resolved,
        0.01,
        &[("a", List::Completing, Some(0.0)), ("b", List::Completing, Some(0.001))],
    );
    let intervals: Vec<f64> = (0..6)
        .map(|_| {
            let decision = policy.decide(&unmeasured(&["a", "b"]));
            assert!((share(&decision, "a") - 1.0).abs() < 1e-12);
            decision.interval
        })
        .collect();
    assert_eq!(intervals, [40.0, 80.0, 160.0, 320.0, 320.0, 320.0]);
}

#[test]
fn an_arrival_and_a_departure_in_one_frame_are_both_seen() {
    // F26: the number of jobs stays the same.
    let mut policy = placed(
        Variant::Resolved,
        0.01,
        &[("a", List::Watching, Some(0.005)), ("b", List::Completing, Some(0.0))],
    );
    policy.interval = 160.0;
    policy.jobs.get_mut(&JobId::new("a").unwrap()).unwrap().share = Share::nearest(0.2);
    let decision = policy.decide(&unmeasured(&["a", "c"]));
    assert_eq!(decision.limits.len(), 2);
    assert!((decision.interval - 20.0).abs() < 1e-12);
    assert_eq!(class(&decision, "c"), "NL");
    // F20: the watched job is raised to an equal share of what the other left.
    assert!((share(&decision, "a") - 0.5).abs() < 1e-12);
}

#[test]
fn a_job_that_uses_no_cpu_is_not_measured() {
    for cpu in [None, Some(0.0), Some(0.009)] {
        let frames = [vec![job("a", 1.0, cpu)], vec![job("a", 0.5, cpu)]];
        let mut policy = policy(Variant::Resolved, &[]);
        let decision = run(&mut policy, 0.0, &frames);
        assert_eq!(policy.jobs[&JobId::new("a").unwrap()].growth, None);
        assert_eq!(class(&decision, "a"), "NL");
    }
}

#[test]
fn losses_closer_together_than_half_the_interval_count_as_one() {
    // F6: the second loss comes 5 s after the first, with an interval of 20 s.
    let frames = |policy: &mut FlowCon| {
        for (t, loss) in [(0.0, 1.0), (5.0, 0.2)] {
            let jobs = vec![job("a", loss, 0.5)];
            drop(policy.decide(&Frame { t, jobs, ..Frame::default() }));
        }
        policy.jobs[&JobId::new("a").unwrap()].growth
    };
    assert_eq!(frames(&mut policy(Variant::Resolved, &[])), None);
    assert_eq!(frames(&mut policy(Variant::Published, &[])), Some(0.8 / 5.0 / 0.5));
}

#[test]
fn a_diverging_job_does_not_count_as_growing() {
    // X6.
    let frames = [vec![job("a", 1.0, 0.5)], vec![job("a", 5.0, 0.5)]];
    assert_eq!(class(&run(&mut policy(Variant::Resolved, &[]), 0.0, &frames), "a"), "WL");
    assert_eq!(class(&run(&mut policy(Variant::Published, &[]), 0.0, &frames), "a"), "NL");
}

#[test]
fn change_too_small_to_write_is_kept_as_chosen() {
    let mut policy = placed(
        Variant::Resolved,
        0.01,
        &[("a", List::Watching, Some(0.005)), ("b", List::New, None)],
    );
    let mut frame = unmeasured(&["a", "b"]);
    frame.jobs[0].limit = Limit { cpu: Some(0.493), applied: Some(0.5), ..Limit::default() };
    assert!((share(&policy.decide(&frame), "a") - 0.493).abs() < 1e-12);
}

#[test]
fn bad_parameters_are_named() {
    let error = |params: &[(&str, f64)]| {
        let mut given = Params::default();
        for (name, value) in params {
            given.set(*name, *value);
        }
        FlowCon::new(Variant::Resolved, &given).unwrap_err().to_string()
    };
    assert_eq!(
        error(&[("beta", 0.0)]),
        r#"invalid parameter beta "0" of flowcon: expected a number above 0"#
    );
    assert_eq!(
        error(&[("max_interval", 5.0)]),
        r#"invalid parameter max_interval "5" of flowcon: expected a number, at least 20"#
    );
    assert_eq!(
        error(&[("gamma", 1.0)]),
        r#"unknown parameter "gamma" of flowcon: expected one of alpha, beta, interval, max_interval"#
    );
}

fn any_job() -> impl Strategy<Value = Job> {
    let number = prop_oneof![Just(0.0), -1e3..1e3, Just(f64::MAX), Just(f64::MIN), Just(1e-300)];
    let optional = || prop::option::of(number.clone());
    ("[a-d]", optional(), optional(), optional(), optional()).prop_map(
        |(id, loss, max, cpu, limit)| Job {
            loss_max: max,
            limit: Limit { cpu: limit, ..Limit::default() },
            ..job(&id, loss, cpu)
        },
    )
}

fn any_run() -> impl Strategy<Value = Vec<Vec<Job>>> {
    let jobs = prop::collection::vec(any_job(), 0..5).prop_map(|mut jobs| {
        jobs.sort_by(|a, b| a.id.cmp(&b.id));
        jobs.dedup_by(|a, b| a.id == b.id);
        jobs
    });
    prop::collection::vec(jobs, 1..12)
}

proptest! {
    #[test]
    fn every_decision_is_finite_complete_and_explained(
        frames in any_run(), published in any::<bool>()
    ) {
        let variant = if published { Variant::Published } else { Variant::Resolved };
        let mut policy = policy(variant, &[]);
        for (at, jobs) in frames.into_iter().enumerate() {
            let frame = Frame { t: count(at) * 7.0, jobs, ..Frame::default() };
            let decision = policy.decide(&frame);
            prop_assert_eq!(decision.limits.len(), frame.jobs.len());
            prop_assert!((20.0..=320.0).contains(&decision.interval));
            for job in &frame.jobs {
                let share = decision.limits[&job.id].get();
                prop_assert!(share > 0.0 && share <= 1.0);
                let JobDecision { score, why, .. } = &decision.jobs[&job.id];
                prop_assert!(score.unwrap().is_finite() && !why.to_string().is_empty());
            }
        }
    }

    #[test]
    fn the_order_of_jobs_is_irrelevant(frames in any_run()) {
        let (mut one, mut other) = (policy(Variant::Resolved, &[]), policy(Variant::Resolved, &[]));
        for (at, jobs) in frames.into_iter().enumerate() {
            let t = count(at) * 15.0;
            let reversed = jobs.iter().rev().cloned().collect();
            prop_assert_eq!(
                one.decide(&Frame { t, jobs, ..Frame::default() }),
                other.decide(&Frame { t, jobs: reversed, ..Frame::default() })
            );
        }
    }

    #[test]
    fn the_scale_of_a_loss_is_irrelevant(losses in prop::collection::vec(0.1..10.0, 2..8)) {
        let classes = |scale: f64| {
            let mut policy = policy(Variant::Resolved, &[]);
            losses.iter().enumerate().map(|(at, loss)| {
                let frame = Frame {
                    t: count(at) * 20.0,
                    jobs: vec![job("a", loss * scale, 0.5), bare("b")],
                    ..Frame::default()
                };
                class(&policy.decide(&frame), "a").to_owned()
            }).collect::<Vec<_>>()
        };
        // A power of two scales without rounding.
        prop_assert_eq!(classes(1.0), classes(256.0));
    }
}
