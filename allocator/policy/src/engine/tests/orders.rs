//! What orders do.

use proptest::prelude::*;

use super::look::Fixed;
use super::*;
use crate::limiter::{Enforcement, Slew};

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three jobs on two CPUs under a policy that always chooses these shares.
pub(super) fn fixed(shares: [f64; 3], settings: LimiterSettings) -> Engine {
    let limits = NAMES.into_iter().zip(shares);
    let limits = limits.map(|(name, share)| (id(name), Share::nearest(share))).collect();
    let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
    let mut engine = engine.limited_by(settings).unwrap();
    for name in NAMES {
        tell(&mut engine, 0.0, Event::Appeared(spec(name)));
    }
    engine
}

pub(super) fn settings(enforcement: Enforcement) -> LimiterSettings {
    LimiterSettings { enforcement, ..LimiterSettings::default() }
}

/// What is to be written at `t`; it is written.
pub(super) fn written(engine: &mut Engine, t: f64, event: Event) -> Vec<Change> {
    let effects = engine.step(at(t), event);
    let set = |effect| match effect {
        Effect::Set(changes) => changes,
        Effect::Decided(_) | Effect::End(_) | Effect::WakeAt(_) => Vec::new(),
    };
    let changes: Vec<Change> = effects.into_iter().flat_map(set).collect();
    for change in &changes {
        tell(engine, t, Event::Applied(change.job.clone(), change.to));
    }
    changes
}

#[test]
fn a_pinned_job_is_held_at_once_and_the_policy_sees_it_no_more() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    written(&mut engine, 0.0, Event::Decide);
    tell(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    let expected = Change { job: id("a"), from: cap(0.5), to: cap(0.3), why: Why::Pinned };
    assert_eq!(written(&mut engine, 1.0, Event::Look), [expected]);
    let (frame, _) = decide(&mut engine, 2.0);
    assert_eq!(frame.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let account = engine.account(&id("a")).unwrap();
    let third = Share::nearest(0.3);
    assert_eq!((account.pinned, account.in_force.cap), (Some(third), third));
    assert_eq!(written(&mut engine, 3.0, Event::Look), []);
}

#[test]
fn a_pin_is_a_cap_also_where_shares_are_weights_and_never_below_what_docker_accepts() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Shares));
    tell(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.0001)));
    let changes = written(&mut engine, 1.0, Event::Look);
    assert_eq!(changes.iter().map(|change| change.to).collect::<Vec<_>>(), [cap(0.005)]);
}

#[test]
fn a_pin_that_is_on_its_way_is_not_asked_for_again_by_a_decision_unless_it_is_late() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    tell(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    let asked = |engine: &mut Engine, t, event| {
        let effects = engine.step(at(t), event);
        let pins = |effect: &Effect| match effect {
            Effect::Set(changes) => changes.iter().filter(|one| one.why == Why::Pinned).count(),
            Effect::Decided(_) | Effect::End(_) | Effect::WakeAt(_) => 0,
        };
        effects.iter().map(pins).sum::<usize>()
    };
    assert_eq!(asked(&mut engine, 1.0, Event::Look), 1);
    assert_eq!(asked(&mut engine, 1.1, Event::Decide), 0);
    assert_eq!(asked(&mut engine, 6.5, Event::Decide), 1, "it was not written in all that time");
}

#[test]
fn what_is_written_over_a_pin_is_written_back() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    tell(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    written(&mut engine, 1.0, Event::Look);
    tell(&mut engine, 2.0, Event::Applied(id("a"), cap(0.9)));
    assert_eq!(written(&mut engine, 3.0, Event::Look), [], "asked for a moment ago");
    assert_eq!(written(&mut engine, 7.0, Event::Look).len(), 1);
}

#[test]
fn nobody_is_lent_of_a_pinned_share() {
    let lent = |pin: Option<f64>| {
        let mut engine = fixed([0.25, 0.5, 0.25], settings(Enforcement::QuotaLeftover));
        written(&mut engine, 0.0, Event::Decide);
        if let Some(share) = pin {
            tell(&mut engine, 0.0, Event::Pinned(id("b"), Share::nearest(share)));
        }
        // "a" uses all that it may, the others nothing at all.
        let mut seconds = 0.0;
        for t in 1..6_u32 {
            let t = f64::from(t);
            let own = engine.account(&id("a")).unwrap().in_force.cap.get();
            seconds += 2.0 * own;
            tell(&mut engine, t, Event::Used(id("a"), used(seconds)));
            tell(&mut engine, t, Event::Used(id("b"), used(0.0)));
            tell(&mut engine, t, Event::Used(id("c"), used(0.0)));
            for name in NAMES {
                let reports = at(t).elapsed().as_secs();
                tell(&mut engine, t, Event::Reported(id(name), progress(reports, 1.0, 0, 0.0)));
            }
            written(&mut engine, t, Event::Look);
        }
        engine.account(&id("a")).unwrap().in_force.cap.get()
    };
    assert!(lent(None) > 0.9, "{}", lent(None));
    let beside_a_pin = lent(Some(0.5));
    assert!((0.4..=0.5).contains(&beside_a_pin), "{beside_a_pin}");
}

#[test]
fn a_target_that_is_set_rules_over_label_and_endpoint_and_others_stay() {
    let mut engine = engine();
    let label = Targets { acceptable: Some(0.5), objective: Some(0.1), batch_latency: None };
    tell(&mut engine, 0.0, Event::Appeared(JobSpec { targets: label, ..spec("a") }));
    tell(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 1.0, 0, 0.0)));
    let set = Targets { acceptable: Some(0.7), ..Targets::default() };
    tell(&mut engine, 2.0, Event::Targets(id("a"), set));
    let set = Targets { batch_latency: Some(0.2), ..Targets::default() };
    tell(&mut engine, 2.0, Event::Targets(id("a"), set));
    let (frame, _) = decide(&mut engine, 3.0);
    let expected =
        Targets { acceptable: Some(0.7), objective: Some(0.1), batch_latency: Some(0.2) };
    assert_eq!(frame.jobs[0].targets, expected);
    assert_eq!(engine.account(&id("a")).unwrap().targets, expected);
    assert!(!frame.jobs[0].reached.acceptable, "what the job latched was another target");
}

#[test]
fn a_guard_that_is_switched_on_for_one_job_bounds_that_one_alone() {
    let mut engine = fixed([0.2, 0.2, 0.2], settings(Enforcement::Quota));
    tell(&mut engine, 0.0, Event::Guarded(id("b"), Guard::Slew, true));
    let to: Vec<Setting> =
        written(&mut engine, 0.0, Event::Decide).iter().map(|change| change.to).collect();
    let step = 1.0 - Slew::default().max_decrease;
    assert_eq!(to, [cap(0.2), cap(step), cap(0.2)]);
    assert_eq!(engine.account(&id("b")).unwrap().guards, [Guard::Slew]);
    assert_eq!(engine.account(&id("a")).unwrap().guards, []);
}

#[derive(Clone, Debug)]
enum Step {
    Pin(usize, f64),
    Release(usize),
    Appear(usize),
    Use(usize, f64),
    Look,
    Decide,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let job = 0..NAMES.len();
    let step = prop_oneof![
        (job.clone(), 0.01..=1.0).prop_map(|(job, share)| Step::Pin(job, share)),
        job.clone().prop_map(Step::Release),
        job.clone().prop_map(Step::Appear),
        (job, 0.0..=1.0).prop_map(|(job, usage)| Step::Use(job, usage)),
        Just(Step::Look),
        Just(Step::Decide),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn no_policy_moves_a_pinned_job_and_nothing_is_written_to_a_released_one(
        steps in steps(),
        shares in proptest::array::uniform3(0.01..=1.0),
        leftover in any::<bool>(),
    ) {
        let enforcement = if leftover { Enforcement::QuotaLeftover } else { Enforcement::Quota };
        let mut engine = fixed(shares, settings(enforcement));
        let mut pinned: [Option<f64>; 3] = [None; 3];
        let mut released = [false; 3];
        let mut seconds = [0.0; 3];
        for (n, step) in steps.into_iter().enumerate() {
            let t = crate::unit::count(n);
            match step {
                Step::Pin(job, share) => {
                    tell(&mut engine, t, Event::Pinned(id(NAMES[job]), Share::nearest(share)));
                    pinned[job] = (!released[job]).then_some(share);
                }
                Step::Release(job) => {
                    tell(&mut engine, t, Event::Gone(id(NAMES[job])));
                    (pinned[job], released[job]) = (None, true);
                }
                Step::Appear(job) => {
                    tell(&mut engine, t, Event::Appeared(spec(NAMES[job])));
                    (pinned[job], released[job]) = (None, false);
                }
                Step::Use(job, usage) => {
                    seconds[job] += 2.0 * usage;
                    tell(&mut engine, t, Event::Used(id(NAMES[job]), used(seconds[job])));
                }
                Step::Look | Step::Decide => {
                    let event =
                        if matches!(step, Step::Look) { Event::Look } else { Event::Decide };
                    for change in written(&mut engine, t, event) {
                        let job = NAMES.iter().position(|name| *name == change.job.as_str());
                        let job = job.unwrap();
                        prop_assert!(!released[job], "{change:?}");
                        if let Some(share) = pinned[job] {
                            prop_assert_eq!(change.to, cap(share));
                        }
                    }
                    for (job, share) in pinned.iter().enumerate() {
                        let Some(share) = share else { continue };
                        let in_force = engine.account(&id(NAMES[job])).unwrap().in_force.cap.get();
                        prop_assert!((in_force - share).abs() < 0.001, "{in_force} {share}");
                    }
                }
            }
        }
    }
}
