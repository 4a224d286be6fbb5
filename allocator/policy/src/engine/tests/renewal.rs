//! Another policy or another limiter, while jobs run.

use super::look::Fixed;
use super::orders::{NAMES, fixed, settings, written};
use super::*;
use crate::limiter::{DEFAULT_WEIGHT, Enforcement, Slew};

/// A policy that always chooses these shares.
fn choosing(shares: [f64; 3]) -> Box<dyn Policy> {
    let limits = NAMES.into_iter().zip(shares);
    Box::new(Fixed(limits.map(|(name, share)| (id(name), Share::nearest(share))).collect()))
}

#[test]
fn a_new_policy_sees_the_jobs_as_they_are_and_no_choice_of_the_one_before() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    tell(&mut engine, 0.0, Event::Reported(id("b"), progress(4, 8.0, 0, 0.0)));
    written(&mut engine, 1.0, Event::Decide);
    tell(&mut engine, 1.0, Event::Reported(id("b"), progress(6, 11.0, 0, 0.0)));
    engine.decided_by(choosing([0.25, 0.25, 0.5]));
    let (frame, _) = decide(&mut engine, 2.0);
    let b = &frame.jobs[1];
    assert_eq!((b.loss, b.limit.cpu, b.limit.applied), (Some(1.5), Some(1.0), Some(0.25)));
    let chosen = NAMES.map(|name| engine.account(&id(name)).unwrap().chosen);
    assert_eq!(chosen, [0.25, 0.25, 0.5].map(Share::nearest));
}

#[test]
fn a_new_policy_takes_effect_from_what_is_in_force_and_pins_and_switches_stay() {
    let careful = LimiterSettings {
        slew: Some(Slew { max_decrease: 0.1, max_increase: None }),
        ..settings(Enforcement::Quota)
    };
    let mut engine = fixed([1.0, 1.0, 1.0], careful);
    tell(&mut engine, 0.0, Event::Pinned(id("c"), Share::nearest(0.3)));
    tell(&mut engine, 0.0, Event::Guarded(id("b"), Guard::Slew, false));
    written(&mut engine, 0.0, Event::Decide);
    engine.decided_by(choosing([0.5, 0.5, 0.5]));
    let changes = written(&mut engine, 1.0, Event::Decide);
    let to: Vec<_> = changes.iter().map(|change| (change.job.as_str(), change.to)).collect();
    assert_eq!(to, [("a", cap(0.9)), ("b", cap(0.5))], "a by one step, c not at all");
    assert_eq!(engine.account(&id("c")).unwrap().pinned, Some(Share::nearest(0.3)));
}

#[test]
fn settings_that_cannot_be_used_leave_everything_as_it_is() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    let bad = LimiterSettings {
        slew: Some(Slew { max_decrease: 7.0, max_increase: None }),
        ..settings(Enforcement::Shares)
    };
    assert!(engine.limit_by(bad).unwrap_err().to_string().contains("slew.max_decrease is 7"));
    let changes = written(&mut engine, 0.0, Event::Decide);
    assert!(
        changes.iter().all(|change| matches!(change.to, Setting::Cap(_))) && !changes.is_empty()
    );
    let good = LimiterSettings { slew: Some(Slew::default()), ..settings(Enforcement::Quota) };
    assert_eq!(engine.limit_by(good), Ok(settings(Enforcement::Quota)), "those before are told");
    assert_eq!(engine.account(&id("a")).unwrap().guards, [Guard::Slew]);
}

#[test]
fn shares_become_weights_and_caps_again_once_what_was_written_is_put_back() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    let put_back = |engine: &mut Engine, t| {
        for name in NAMES {
            tell(engine, t, Event::Applied(id(name), Setting::Cap(Share::ALL)));
            tell(engine, t, Event::Applied(id(name), Setting::Weight(DEFAULT_WEIGHT)));
        }
    };
    let caps = written(&mut engine, 0.0, Event::Decide);
    engine.limit_by(settings(Enforcement::Shares)).unwrap();
    put_back(&mut engine, 1.0);
    let weights = written(&mut engine, 1.0, Event::Decide);
    assert!(weights.iter().all(|change| matches!(change.to, Setting::Weight(_))), "{weights:?}");
    engine.limit_by(settings(Enforcement::Quota)).unwrap();
    put_back(&mut engine, 2.0);
    assert_eq!(written(&mut engine, 2.0, Event::Decide), caps, "as at the start");
}
