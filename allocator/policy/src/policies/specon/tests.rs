mod moves;
mod properties;

use super::*;
use crate::frame::{Limit, Node, Usage};
use crate::reason::specon::{Class, Trend};
use crate::unit::Share;

const VARIANTS: [Variant; 2] = [Variant::Resolved, Variant::Published];

/// A job on a node, with no other values.
fn job(id: &str, node: impl Into<Option<&'static str>>) -> Job {
    let frame = Frame::parse(&format!(r#"{{"t": 0, "jobs": [{{"id": "{id}"}}]}}"#)).unwrap();
    let bare = frame.jobs.into_iter().next().unwrap();
    Job { node: node.into().map(Into::into), ..bare }
}

/// A job whose losses are of the scale 1.
fn lost(id: &str, node: impl Into<Option<&'static str>>, loss: f64) -> Job {
    Job { loss: Some(loss), loss_max: Some(1.0), ..job(id, node) }
}

fn node(name: &str, cpu: f64) -> Node {
    let usage = Usage { cpu: Some(cpu), ..Usage::default() };
    Node { name: name.into(), usage, ..Node::default() }
}

fn frame(t: f64, nodes: &[(&str, f64)], jobs: Vec<Job>) -> Frame {
    Frame { t, nodes: nodes.iter().map(|(name, cpu)| node(name, *cpu)).collect(), jobs }
}

fn specon(variant: Variant, params: &[(&str, f64)]) -> SpeCon {
    let mut given = Params::default();
    for (name, value) in params {
        given.set(*name, *value);
    }
    SpeCon::new(variant, &given).unwrap()
}

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn class(decision: &Decision, name: &str) -> &'static str {
    decision.jobs[&id(name)].class
}

fn why(decision: &Decision, name: &str) -> String {
    decision.jobs[&id(name)].why.to_string()
}

/// The classes that a job goes through, frame by frame, when its losses are these.
fn classes(variant: Variant, seconds: f64, losses: &[f64]) -> Vec<&'static str> {
    let mut policy = specon(variant, &[]);
    let mut t = 0.0;
    let mut seen = Vec::new();
    for loss in losses {
        let decision = policy.decide(&frame(t, &[], vec![lost("a", None, *loss)]));
        seen.push(class(&decision, "a"));
        t += seconds;
    }
    seen
}

#[test]
fn job_falls_one_category_a_frame_and_asks_only_from_the_last() {
    // The traced example: S7, S8, S9 and S10. `!` is a request.
    for variant in VARIANTS {
        let rule = specon(variant, &[]).rule;
        let mut member = Member::new();
        let gains = [0.2, 0.05, 0.009, 0.008, 0.007, 0.0075, 0.006, 0.02, 0.005];
        let trace = gains.map(|gain| {
            let asks = member.judge(0.0, gain, rule).has_converged();
            format!("{}{}", member.class.label(), if asks { "!" } else { "" })
        });
        assert_eq!(trace, ["PC", "PC", "WC", "CC", "CC!", "CC", "CC!", "PC", "WC"]);
    }
}

#[test]
fn alpha_itself_counts_as_growth() {
    // S6.
    for variant in VARIANTS {
        let rule = specon(variant, &[("alpha", 0.25)]).rule;
        let mut member = Member::new();
        member.class = Class::Converged;
        member.judge(0.0, 0.5, rule);
        assert_eq!(member.judge(0.0, 0.25, rule), Trend::Growing { gain: 0.25, alpha: 0.25 });
        assert_eq!(member.class, Class::Progressing);
    }
}

#[test]
fn fewer_than_two_gains_keep_the_category() {
    // S4: the first gain, 0, is below α and yet no reason to leave PC.
    let classes = classes(Variant::Resolved, 30.0, &[0.5, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(classes, ["PC", "PC", "WC", "CC", "CC"]);
}

#[test]
fn a_flat_job_does_not_hang_between_the_categories() {
    let flat = [0.5, 0.5, 0.5, 0.5];
    assert_eq!(classes(Variant::Resolved, 30.0, &flat), ["PC", "PC", "WC", "CC"]);
    assert_eq!(classes(Variant::Published, 30.0, &flat), ["PC"; 4]);
}

#[test]
fn a_diverging_job_does_not_count_as_progressing() {
    // X6.
    let diverging = [0.1, 0.2, 0.3, 0.4, 0.5];
    assert_eq!(classes(Variant::Resolved, 30.0, &diverging)[4], "CC");
    assert_eq!(classes(Variant::Published, 30.0, &diverging)[4], "PC");
}

#[test]
fn losses_closer_together_than_half_the_interval_count_as_one() {
    // F6: 15 s is half of it. Published, every loss counts, also one of the same time.
    let score = |variant, seconds| {
        let mut policy = specon(variant, &[]);
        drop(policy.decide(&frame(0.0, &[], vec![lost("a", None, 1.0)])));
        let decision = policy.decide(&frame(seconds, &[], vec![lost("a", None, 0.75)]));
        decision.jobs[&id("a")].score
    };
    assert_eq!(score(Variant::Resolved, 14.0), None);
    assert_eq!(score(Variant::Resolved, 15.0), Some(0.25));
    assert_eq!(score(Variant::Published, 1.0), Some(0.25));
    assert_eq!(score(Variant::Published, 0.0), Some(0.25));
}

#[test]
fn a_gain_is_never_scaled_by_time_or_by_frames_missed() {
    let mut policy = specon(Variant::Resolved, &[]);
    drop(policy.decide(&frame(0.0, &[], vec![lost("a", None, 1.0)])));
    for t in [30.0, 60.0] {
        let silent = policy.decide(&frame(t, &[], vec![job("a", None)]));
        assert_eq!(silent.jobs[&id("a")].score, None);
        assert_eq!(why(&silent, "a"), "no gain measured: PC kept");
    }
    let decision = policy.decide(&frame(90.0, &[], vec![lost("a", None, 0.75)]));
    assert_eq!(decision.jobs[&id("a")].score, Some(0.25));
}

#[test]
fn a_job_that_comes_back_is_new() {
    let mut policy = specon(Variant::Resolved, &[]);
    for t in [0.0, 30.0, 60.0, 90.0] {
        drop(policy.decide(&frame(t, &[], vec![lost("a", None, 0.5)])));
    }
    drop(policy.decide(&frame(120.0, &[], Vec::new())));
    let decision = policy.decide(&frame(150.0, &[], vec![lost("a", None, 0.5)]));
    assert_eq!((class(&decision, "a"), decision.jobs[&id("a")].score), ("PC", None));
}

#[test]
fn limits_are_left_as_they_are() {
    let mut policy = specon(Variant::Resolved, &[]);
    let mut share = |cpu| {
        let limit = Limit { cpu, ..Limit::default() };
        policy.decide(&frame(0.0, &[], vec![Job { limit, ..job("a", None) }])).limits[&id("a")]
    };
    let shares = [None, Some(0.25), None, Some(0.0), Some(1.5)].map(&mut share);
    assert_eq!(
        shares.map(|share: Share| share.get().to_string()),
        ["1", "0.25", "0.25", "0.25", "1"]
    );
}

#[test]
fn reasons_state_the_figures_they_compare() {
    let mut policy = specon(Variant::Resolved, &[]);
    let mut reason = |t, loss| {
        let decision = policy.decide(&frame(t, &[], vec![lost("a", None, loss)]));
        assert!((decision.interval - 30.0).abs() < 1e-12);
        why(&decision, "a")
    };
    assert_eq!(reason(0.0, 1.0), "no gain measured: PC kept");
    assert_eq!(reason(30.0, 0.875), "first gain 0.125000: PC kept");
    assert_eq!(reason(60.0, 0.75), "gain 0.125000 >= alpha 0.01: PC");
    assert_eq!(reason(90.0, 0.75), "gain 0.000000 < alpha 0.01, not up from 0.125000: PC to WC");
    assert_eq!(
        reason(120.0, 0.745),
        "gain 0.005000 < alpha 0.01, but not down from 0.000000: WC kept"
    );
}

#[test]
fn bad_parameters_are_named() {
    let error = |params: &[(&str, f64)]| {
        let mut given = Params::default();
        for (name, value) in params {
            given.set(*name, *value);
        }
        SpeCon::new(Variant::Resolved, &given).unwrap_err().to_string()
    };
    assert_eq!(
        error(&[("alpha", -0.5)]),
        r#"invalid parameter alpha "-0.5" of specon: expected a number, at least 0"#
    );
    assert_eq!(
        error(&[("interval", 0.0)]),
        r#"invalid parameter interval "0" of specon: expected a number above 0"#
    );
    assert_eq!(
        error(&[("w_pc", 1.0)]),
        r#"invalid parameter w_pc "1" of specon: expected a number, at least 1.5"#
    );
    assert_eq!(
        error(&[("beta", 1.0)]),
        r#"unknown parameter "beta" of specon: expected one of alpha, interval, w_cc, w_wc, w_pc"#
    );
}
