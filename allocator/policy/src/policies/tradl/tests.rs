use paceline_wire::{Direction, Targets};
use proptest::prelude::*;

use super::*;
use crate::frame::{Limit, Reached, Usage};

fn bare(id: &str) -> Job {
    let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{id}"}}]}}"#)).unwrap();
    frame.jobs.into_iter().next().unwrap()
}

/// A job that uses `cpu` of the node and has no targets.
fn rival(id: &str, cpu: f64) -> Job {
    Job { usage: Usage { cpu: Some(cpu), ..Usage::default() }, ..bare(id) }
}

fn aims(acceptable: impl Into<Option<f64>>, objective: impl Into<Option<f64>>) -> Targets {
    Targets { acceptable: acceptable.into(), objective: objective.into(), batch_latency: None }
}

/// A job with acceptable 0.3 and objective 0.25.
fn job(id: &str, loss: impl Into<Option<f64>>, cpu: f64) -> Job {
    Job { loss: loss.into(), targets: aims(0.3, 0.25), ..rival(id, cpu) }
}

/// The same with `cpu` as its limit, chosen and in force.
fn limited(job: Job, cpu: f64) -> Job {
    Job { limit: Limit { cpu: Some(cpu), applied: Some(cpu), ..Limit::default() }, ..job }
}

fn policy(variant: Variant, params: &[(&str, f64)]) -> Tradl {
    let mut given = Params::default();
    for (name, value) in params {
        given.set(*name, *value);
    }
    Tradl::new(variant, &given).unwrap()
}

const VARIANTS: [Variant; 2] = [Variant::Resolved, Variant::Published];

fn decide(policy: &mut Tradl, jobs: &[Job]) -> Decision {
    policy.decide(&Frame { jobs: jobs.to_vec(), ..Frame::default() })
}

/// The share of a job; `None` where it is to have none.
fn share(decision: &Decision, id: &str) -> Option<f64> {
    decision.limits.get(&JobId::new(id).unwrap()).map(|share| share.get())
}

fn class(decision: &Decision, id: &str) -> &'static str {
    decision.jobs[&JobId::new(id).unwrap()].class
}

fn why(decision: &Decision, id: &str) -> String {
    decision.jobs[&JobId::new(id).unwrap()].why.to_string()
}

fn ended(decision: &Decision) -> Vec<&str> {
    decision.terminate.iter().map(JobId::as_str).collect()
}

/// The class after each of the losses, `end` once the job is ended.
fn classes(variant: Variant, losses: &[Option<f64>], as_job: impl Fn(Job) -> Job) -> Vec<&str> {
    let mut policy = policy(variant, &[]);
    let mut seen = Vec::new();
    for loss in losses {
        let decision = decide(&mut policy, &[as_job(job("a", *loss, 0.5)), rival("b", 0.5)]);
        seen.push(if ended(&decision) == ["a"] { "end" } else { class(&decision, "a") });
    }
    seen
}

#[test]
fn falling_loss_makes_a_job_acceptable_and_three_hits_end_it() {
    // T8, T9, T12.
    let losses = [0.5, 0.29, 0.24, 0.24, 0.24].map(Some);
    assert_eq!(classes(Variant::Resolved, &losses, |job| job), ["-", "AS", "AS", "AS", "end"]);
    assert_eq!(classes(Variant::Published, &losses, |job| job), ["-", "AS", "end", "end", "end"]);
}

#[test]
fn rising_accuracy_is_treated_like_a_falling_loss() {
    let up = |job| Job { direction: Direction::Maximize, targets: aims(0.93, 0.98), ..job };
    let losses = [0.5, 0.95, 0.985, 0.985, 0.98].map(Some);
    assert_eq!(classes(Variant::Resolved, &losses, up), ["-", "AS", "AS", "AS", "end"]);
    assert_eq!(classes(Variant::Published, &losses, up), ["-", "AS", "end", "end", "end"]);
}

#[test]
fn missing_loss_keeps_the_count_and_a_worse_loss_resets_it() {
    let low = Some(0.24);
    let silent = [low, None, low, None, low];
    assert_eq!(classes(Variant::Resolved, &silent, |job| job), ["AS", "AS", "AS", "AS", "end"]);
    let broken = [low, low, Some(0.26), low, low, low];
    assert_eq!(
        classes(Variant::Resolved, &broken, |job| job),
        ["AS", "AS", "AS", "AS", "AS", "end"]
    );
}

#[test]
fn a_missing_target_is_never_reached() {
    // T11.
    let low = [0.1, 0.1, 0.1].map(Some);
    for variant in VARIANTS {
        let no_objective = |job| Job { targets: aims(0.3, None), ..job };
        assert_eq!(classes(variant, &low, no_objective), ["AS", "AS", "AS"]);
        let none = |job| {
            let reached = Reached { acceptable: true, objective: true };
            Job { targets: aims(None, None), reached, ..job }
        };
        assert_eq!(classes(variant, &low, none), ["-", "-", "-"]);
    }
    let no_acceptable = |job| Job { targets: aims(None, 0.25), ..job };
    assert_eq!(classes(Variant::Resolved, &low, no_acceptable), ["-", "-", "end"]);
}

#[test]
fn job_with_equal_targets_competes_until_it_ends() {
    // T10.
    let one = |job| Job { targets: aims(0.25, 0.25), ..job };
    let losses = [0.24, 0.26, 0.25, 0.25, 0.25].map(Some);
    assert_eq!(classes(Variant::Resolved, &losses, one), ["-", "-", "-", "-", "end"]);
}

#[test]
fn job_that_reports_acceptable_needs_no_loss() {
    let says = |job| Job { reached: Reached { acceptable: true, objective: true }, ..job };
    for variant in VARIANTS {
        assert_eq!(classes(variant, &[None, Some(0.5), None], says), ["AS", "AS", "AS"]);
    }
}

#[test]
fn new_targets_reset_the_latch_and_the_count() {
    let mut policy = policy(Variant::Resolved, &[]);
    let reached = Reached { acceptable: true, objective: false };
    let mut run = |loss: Option<f64>, targets| {
        let job = Job { reached, targets, ..job("a", loss, 0.5) };
        let decision = decide(&mut policy, &[job, rival("b", 0.5)]);
        let seen = if ended(&decision).is_empty() { class(&decision, "a") } else { "end" };
        (seen, policy.jobs.values().next().unwrap().reaching)
    };
    assert_eq!(run(Some(0.2), aims(0.3, 0.25)), ("AS", 1));
    assert_eq!(run(Some(0.2), aims(0.3, 0.25)), ("AS", 2));
    // The job's own report may still concern the old target; a measured loss does not.
    assert_eq!(run(None, aims(0.22, 0.25)), ("-", 0));
    assert_eq!(run(None, aims(0.22, 0.25)), ("AS", 0));
    assert_eq!(run(Some(0.2), aims(0.22, 0.21)), ("AS", 1));
    assert_eq!(run(Some(0.2), aims(0.1, 0.21)), ("-", 1));
}

#[test]
fn ended_job_no_longer_counts_but_is_listed_while_present() {
    // T4: the last job, and any job on a node with room left, is ended, too.
    let mut policy = policy(Variant::Resolved, &[("confirm", 1.0)]);
    let capped = [job("a", 0.28, 0.5), job("b", 0.5, 0.2), rival("c", 0.3)];
    assert_eq!(share(&decide(&mut policy, &capped), "a"), Some(1.0 / 6.0));
    let now = [job("a", 0.28, 0.5), job("b", 0.2, 0.2), rival("c", 0.3)];
    let decision = decide(&mut policy, &now);
    assert_eq!(
        (ended(&decision), class(&decision, "b"), share(&decision, "b")),
        (vec!["b"], "-", None)
    );
    assert_eq!(share(&decision, "a"), Some(1.0 / 3.0), "n is 2 in the same frame");
    let reason = why(&decision, "b");
    let again = Job { targets: aims(0.1, 0.1), ..job("b", 0.05, 0.2) };
    assert_eq!(why(&decide(&mut policy, &[again]), "b"), reason);
    let later = [
        job("a", 0.28, 0.5),
        Job { targets: aims(0.1, 0.1), may_terminate: Some(false), ..job("b", 0.9, 0.2) },
    ];
    let decision = decide(&mut policy, &later);
    assert_eq!(ended(&decision), ["b"], "for good");
    assert_eq!(share(&decision, "a"), Some(1.0), "it is alone");
    assert_eq!(ended(&decide(&mut policy, &later[..1])), [""; 0]);
    let decision = decide(&mut policy, &later);
    assert_eq!(share(&decision, "b"), Some(1.0), "back again, it is new");
}

#[test]
fn job_is_ended_only_at_the_first_loss_after_it_is_allowed() {
    let mut policy = policy(Variant::Resolved, &[]);
    let mut run = |loss: Option<f64>, may_terminate| {
        let job = Job { may_terminate, ..job("a", loss, 0.5) };
        let decision = decide(&mut policy, &[job, rival("b", 0.5)]);
        (ended(&decision).len(), share(&decision, "a"))
    };
    for _ in 0..5 {
        assert_eq!(run(Some(0.2), Some(false)), (0, Some(1.0 / 3.0)));
    }
    assert_eq!(run(None, Some(true)), (0, Some(1.0 / 3.0)));
    assert_eq!(run(Some(0.2), None), (1, None));
}

/// The share of an acceptable job that uses `cpu` among `n` jobs on a full node.
fn tier(variant: Variant, n: u32, cpu: f64) -> Option<f64> {
    let mut jobs = vec![job("a", 0.29, cpu)];
    jobs.extend((1..n).map(|i| rival(&i.to_string(), 1.0)));
    share(&decide(&mut policy(variant, &[]), &jobs), "a")
}

#[test]
fn heavy_user_gets_half_an_equal_share_and_others_almost_one() {
    for variant in VARIANTS {
        assert_eq!(tier(variant, 5, 0.3), Some(0.1));
        assert_eq!(tier(variant, 5, 0.2), Some(1.0 / 6.0));
        assert_eq!(tier(variant, 2, 0.5), Some(1.0 / 3.0));
        assert_eq!(tier(variant, 1, 1.0), Some(1.0), "T7: alone, it has no limit");
    }
    // T15: fair sharing gives just 1/n.
    assert_eq!(tier(Variant::Resolved, 5, 0.200_000_1), Some(1.0 / 6.0));
    assert_eq!(tier(Variant::Published, 5, 0.200_000_1), Some(0.1));
    assert_eq!(tier(Variant::Resolved, 5, 1.05 / 5.0), Some(1.0 / 6.0), "not above");
}

/// The shares of the acceptable one of five jobs that could use a third of the node each.
fn third_of_five(variant: Variant) -> Vec<Option<f64>> {
    let mut policy = policy(variant, &[]);
    let mut given: f64 = 1.0;
    let rivals = ["b", "c", "d", "e"].map(|id| rival(id, 0.25));
    (0..3)
        .map(|_| {
            let a = limited(job("a", 0.29, given.min(1.0 / 3.0)), given);
            let decision = decide(&mut policy, &[&[a], &rivals[..]].concat());
            given = share(&decision, "a").unwrap();
            Some(given)
        })
        .collect()
}

#[test]
fn cap_stays_although_it_lowers_the_usage() {
    // T15.
    assert_eq!(third_of_five(Variant::Resolved), [0.1, 0.1, 0.1].map(Some));
    assert_eq!(third_of_five(Variant::Published), [0.1, 1.0 / 6.0, 1.0 / 6.0].map(Some));
}

#[test]
fn cap_is_chosen_again_when_job_count_or_targets_change() {
    let mut policy = policy(Variant::Resolved, &[]);
    let jobs = [job("a", 0.29, 0.6), rival("b", 0.6), rival("c", 0.6)];
    assert_eq!(share(&decide(&mut policy, &jobs), "a"), Some(1.0 / 6.0));
    let fewer = [job("a", None, 0.4), rival("b", 0.6)];
    assert_eq!(share(&decide(&mut policy, &fewer), "a"), Some(1.0 / 3.0));
    // A job that is acceptable by its new targets enters AS again.
    let again = [Job { targets: aims(0.31, 0.25), ..job("a", 0.3, 0.8) }, rival("b", 0.6)];
    assert_eq!(share(&decide(&mut policy, &again), "a"), Some(0.25));
    // One went and one came: n is the same.
    let other = [Job { targets: aims(0.31, 0.25), ..job("a", None, 0.2) }, rival("c", 0.8)];
    assert_eq!(share(&decide(&mut policy, &other), "a"), Some(0.25));
}

#[test]
fn caps_are_lifted_when_the_node_has_had_room_for_three_frames() {
    // T5. Where it is not said otherwise, "a" uses less than its cap.
    let mut resolved = policy(Variant::Resolved, &[]);
    let mut published = policy(Variant::Published, &[]);
    let mut run = |a: f64, b: f64| {
        let jobs = [limited(job("a", 0.29, a), 0.25), rival("b", b)];
        [&mut resolved, &mut published].map(|policy| share(&decide(policy, &jobs), "a"))
    };
    let (all, cap, half) = (Some(1.0), Some(1.0 / 3.0), Some(1.0 / 4.0));
    assert_eq!(run(0.1, 0.5), [cap, all]);
    assert_eq!(run(0.1, 0.5), [cap, all]);
    assert_eq!(run(0.2375, 0.5), [cap, all], "0.95 × 0.25: the count restarts");
    assert_eq!(run(0.1, 0.5), [cap, all]);
    assert_eq!(run(0.1, 0.8), [cap, cap], "0.9 of the node is not below alpha");
    assert_eq!(run(0.1, 0.5), [cap, all]);
    assert_eq!(run(0.1, 0.5), [cap, all]);
    assert_eq!(run(0.1, 0.5), [all, all]);
    assert_eq!(run(0.6, 0.5), [half, half], "chosen again after that");
}

#[test]
fn frames_with_all_jobs_acceptable_count_towards_hold() {
    let mut policy = policy(Variant::Resolved, &[]);
    let both = [job("a", 0.29, 0.1), job("b", 0.29, 0.1)];
    for _ in 0..2 {
        assert!(why(&decide(&mut policy, &both), "a").starts_with("all running jobs (2)"));
    }
    let decision = decide(&mut policy, &[job("a", None, 0.1), rival("c", 0.1)]);
    assert_eq!(share(&decision, "a"), Some(1.0));
    assert!(why(&decision, "c").starts_with("total usage 0.2000 < alpha 0.9"));
}

#[test]
fn limit_in_force_decides_whether_a_job_presses_on_its_cap() {
    // (chosen, in force, presses at a usage of 0.32)
    for (cpu, applied, presses) in [
        (Some(0.3), None, true),
        (Some(0.5), None, false),
        (Some(0.3), Some(0.5), false),
        (Some(0.5), Some(0.3), true),
        (Some(0.3), Some(1.0), false),
        // The policy's own last choice is 1/3.
        (None, None, true),
        (Some(0.0), Some(f64::NAN), true),
        (None, Some(0.0), true),
    ] {
        let mut policy = policy(Variant::Resolved, &[("hold", 1.0)]);
        decide(&mut policy, &[job("a", 0.29, 0.3), rival("b", 0.7)]);
        let limit = Limit { cpu, applied, ..Limit::default() };
        let frame = [Job { limit, ..job("a", None, 0.32) }, rival("b", 0.3)];
        let kept = share(&decide(&mut policy, &frame), "a") == Some(1.0 / 3.0);
        assert_eq!(kept, presses, "{cpu:?} {applied:?}");
    }
}

#[test]
fn a_job_without_a_limit_does_not_press_on_one() {
    let mut policy = policy(Variant::Resolved, &[("alpha", 1.5), ("hold", 1.0)]);
    let jobs = [limited(job("a", 0.29, 1.0), 1.0), rival("b", 0.3)];
    assert_eq!(share(&decide(&mut policy, &jobs), "a"), Some(1.0));
}

#[test]
fn usage_that_is_not_known_counts_as_none() {
    let mut policy = policy(Variant::Resolved, &[]);
    let a = Job { usage: Usage::default(), ..job("a", 0.29, 0.0) };
    assert_eq!(share(&decide(&mut policy, &[a, rival("b", 0.95)]), "a"), Some(1.0 / 3.0));
}

#[test]
fn reasons_state_the_figures_they_compare() {
    let mut policy = policy(Variant::Resolved, &[("confirm", 2.0)]);
    let jobs = |c: f64| {
        let one = Job { targets: aims(0.3, 0.3), ..job("d", 0.29, 0.0) };
        [job("a", 0.29, 0.4), rival("b", 0.6), job("c", c, 0.1), one, job("e", None, 0.0)]
    };
    decide(&mut policy, &jobs(0.24));
    let decision = decide(&mut policy, &jobs(0.25));
    assert_eq!(ended(&decision), ["c", "d"]);
    assert_eq!(why(&decision, "a"), "acceptable, usage 0.4000 > 1.05/3, so 1/6");
    assert_eq!(why(&decision, "b"), "no acceptable loss is set: no limit");
    assert_eq!(why(&decision, "c"), "loss 0.25 reaches objective 0.25, 2 in a row: job ended");
    assert_eq!(why(&decision, "e"), "acceptable loss 0.3 not reached, no loss yet: no limit");
    let score = |id: &str| decision.jobs[&JobId::new(id).unwrap()].score;
    assert_eq!(["a", "c", "e"].map(score), [Some(0.29), Some(0.25), None]);
}

#[test]
fn bad_parameters_are_named() {
    let error = |name: &str, value| {
        let mut given = Params::default();
        given.set(name, value);
        Tradl::new(Variant::Resolved, &given).unwrap_err().to_string()
    };
    assert_eq!(
        error("hold", 0.5),
        r#"invalid parameter hold "0.5" of tradl: expected a number, at least 1"#
    );
    assert_eq!(
        error("beta", 2.0),
        r#"unknown parameter "beta" of tradl: expected one of alpha, confirm, hold, interval"#
    );
}

mod properties;
