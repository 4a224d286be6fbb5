//! Effects of commands.

use proptest::prelude::*;

use super::ticks::Fixed;
use super::*;
use crate::limiter::{Enforcement, Slew};

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three jobs on two CPUs under a policy that always chooses these shares.
pub(super) fn fixed(shares: [f64; 3], settings: LimiterSettings) -> Engine {
    let limits = NAMES.into_iter().zip(shares);
    let limits = limits.map(|(name, share)| (id(name), Share::nearest(share))).collect();
    let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
    let mut engine = engine.with_limiter(settings).unwrap();
    for name in NAMES {
        apply(&mut engine, 0.0, Event::Appeared(spec(name)));
    }
    engine
}

pub(super) fn settings(enforcement: Enforcement) -> LimiterSettings {
    LimiterSettings { enforcement, ..LimiterSettings::default() }
}

/// The changes at `t`, which are applied.
pub(super) fn written(engine: &mut Engine, t: f64, event: Event) -> Vec<Change> {
    let effects = engine.step(at(t), event);
    let set = |effect| match effect {
        Effect::Set(changes) => changes,
        Effect::Decided(_) | Effect::End(_) | Effect::WakeAt(_) => Vec::new(),
    };
    let changes: Vec<Change> = effects.into_iter().flat_map(set).collect();
    for change in &changes {
        apply(engine, t, Event::Applied(change.job.clone(), change.to));
    }
    changes
}

#[test]
fn pinned_job_is_held_at_once_and_hidden_from_the_policy() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    written(&mut engine, 0.0, Event::Decide);
    apply(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    let expected = Change { job: id("a"), from: cap(0.5), to: cap(0.3), why: Why::Pinned };
    assert_eq!(written(&mut engine, 1.0, Event::Tick), [expected]);
    let (frame, _) = decide(&mut engine, 2.0);
    assert_eq!(frame.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let status = engine.status(&id("a")).unwrap();
    let third = Share::nearest(0.3);
    assert_eq!((status.pinned, status.in_force.cap), (Some(third), third));
    assert_eq!(written(&mut engine, 3.0, Event::Tick), []);
}

#[test]
fn pin_is_a_cap_even_with_weights_and_at_least_dockers_minimum() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Shares));
    apply(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.0001)));
    let changes = written(&mut engine, 1.0, Event::Tick);
    assert_eq!(changes.iter().map(|change| change.to).collect::<Vec<_>>(), [cap(0.005)]);
}

#[test]
fn pending_pin_is_requested_again_only_once_it_is_overdue() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    apply(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    let asked = |engine: &mut Engine, t, event| {
        let effects = engine.step(at(t), event);
        let pins = |effect: &Effect| match effect {
            Effect::Set(changes) => changes.iter().filter(|one| one.why == Why::Pinned).count(),
            Effect::Decided(_) | Effect::End(_) | Effect::WakeAt(_) => 0,
        };
        effects.iter().map(pins).sum::<usize>()
    };
    assert_eq!(asked(&mut engine, 1.0, Event::Tick), 1);
    assert_eq!(asked(&mut engine, 1.1, Event::Decide), 0);
    assert_eq!(asked(&mut engine, 6.5, Event::Decide), 1, "it was not written meanwhile");
}

#[test]
fn overwritten_pin_is_written_again() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    apply(&mut engine, 1.0, Event::Pinned(id("a"), Share::nearest(0.3)));
    written(&mut engine, 1.0, Event::Tick);
    apply(&mut engine, 2.0, Event::Applied(id("a"), cap(0.9)));
    assert_eq!(written(&mut engine, 3.0, Event::Tick), [], "asked for a moment ago");
    assert_eq!(written(&mut engine, 7.0, Event::Tick).len(), 1);
}

#[test]
fn pinned_share_is_never_lent() {
    let lent = |pin: Option<f64>| {
        let mut engine = fixed([0.25, 0.5, 0.25], settings(Enforcement::QuotaLeftover));
        written(&mut engine, 0.0, Event::Decide);
        if let Some(share) = pin {
            apply(&mut engine, 0.0, Event::Pinned(id("b"), Share::nearest(share)));
        }
        // "a" uses its whole share, the others nothing.
        let mut seconds = 0.0;
        for t in 1..6_u32 {
            let t = f64::from(t);
            let own = engine.status(&id("a")).unwrap().in_force.cap.get();
            seconds += 2.0 * own;
            apply(&mut engine, t, Event::Used(id("a"), used(seconds)));
            apply(&mut engine, t, Event::Used(id("b"), used(0.0)));
            apply(&mut engine, t, Event::Used(id("c"), used(0.0)));
            for name in NAMES {
                let reports = at(t).elapsed().as_secs();
                apply(&mut engine, t, Event::Reported(id(name), progress(reports, 1.0, 0, 0.0)));
            }
            written(&mut engine, t, Event::Tick);
        }
        engine.status(&id("a")).unwrap().in_force.cap.get()
    };
    assert!(lent(None) > 0.9, "{}", lent(None));
    let beside_a_pin = lent(Some(0.5));
    assert!((0.4..=0.5).contains(&beside_a_pin), "{beside_a_pin}");
}

#[test]
fn target_set_by_command_overrides_label_and_endpoint() {
    let mut engine = engine();
    let label = Targets { acceptable: Some(0.5), objective: Some(0.1), batch_latency: None };
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { targets: label, ..spec("a") }));
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 1.0, 0, 0.0)));
    let set = Targets { acceptable: Some(0.7), ..Targets::default() };
    apply(&mut engine, 2.0, Event::Targets(id("a"), set));
    let set = Targets { batch_latency: Some(0.2), ..Targets::default() };
    apply(&mut engine, 2.0, Event::Targets(id("a"), set));
    let (frame, _) = decide(&mut engine, 3.0);
    let expected =
        Targets { acceptable: Some(0.7), objective: Some(0.1), batch_latency: Some(0.2) };
    assert_eq!(frame.jobs[0].targets, expected);
    assert_eq!(engine.status(&id("a")).unwrap().targets, expected);
    assert!(!frame.jobs[0].reached.acceptable, "the job latched another target");
}

#[test]
fn guard_switched_on_for_one_job_affects_only_that_job() {
    let mut engine = fixed([0.2, 0.2, 0.2], settings(Enforcement::Quota));
    apply(&mut engine, 0.0, Event::Guarded(id("b"), Guard::Slew, true));
    let to: Vec<Setting> =
        written(&mut engine, 0.0, Event::Decide).iter().map(|change| change.to).collect();
    let step = 1.0 - Slew::default().max_decrease;
    assert_eq!(to, [cap(0.2), cap(step), cap(0.2)]);
    assert_eq!(engine.status(&id("b")).unwrap().guards, [Guard::Slew]);
    assert_eq!(engine.status(&id("a")).unwrap().guards, []);
}

#[derive(Clone, Debug)]
enum Step {
    Pin(usize, f64),
    Release(usize),
    Appear(usize),
    Use(usize, f64),
    Tick,
    Decide,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let job = 0..NAMES.len();
    let step = prop_oneof![
        (job.clone(), 0.01..=1.0).prop_map(|(job, share)| Step::Pin(job, share)),
        job.clone().prop_map(Step::Release),
        job.clone().prop_map(Step::Appear),
        (job, 0.0..=1.0).prop_map(|(job, usage)| Step::Use(job, usage)),
        Just(Step::Tick),
        Just(Step::Decide),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn pinned_jobs_stay_pinned_and_released_jobs_get_no_writes(
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
                    apply(&mut engine, t, Event::Pinned(id(NAMES[job]), Share::nearest(share)));
                    pinned[job] = (!released[job]).then_some(share);
                }
                Step::Release(job) => {
                    apply(&mut engine, t, Event::Gone(id(NAMES[job])));
                    (pinned[job], released[job]) = (None, true);
                }
                Step::Appear(job) => {
                    apply(&mut engine, t, Event::Appeared(spec(NAMES[job])));
                    (pinned[job], released[job]) = (None, false);
                }
                Step::Use(job, usage) => {
                    seconds[job] += 2.0 * usage;
                    apply(&mut engine, t, Event::Used(id(NAMES[job]), used(seconds[job])));
                }
                Step::Tick | Step::Decide => {
                    let event =
                        if matches!(step, Step::Tick) { Event::Tick } else { Event::Decide };
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
                        let in_force = engine.status(&id(NAMES[job])).unwrap().in_force.cap.get();
                        prop_assert!((in_force - share).abs() < 0.001, "{in_force} {share}");
                    }
                }
            }
        }
    }
}
