//! Replacing the policy or the limiter's settings while jobs run.

use super::orders::{NAMES, fixed, settings, written};
use super::ticks::Fixed;
use super::*;
use crate::limiter::{DEFAULT_WEIGHT, Enforcement, Slew};

/// A policy that always chooses these shares.
fn choosing(shares: [f64; 3]) -> Box<dyn Policy> {
    let limits = NAMES.into_iter().zip(shares);
    Box::new(Fixed(limits.map(|(name, share)| (id(name), Share::nearest(share))).collect()))
}

#[test]
fn new_policy_sees_current_jobs_without_earlier_choices() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    apply(&mut engine, 0.0, Event::Reported(id("b"), progress(4, 8.0, 0, 0.0)));
    written(&mut engine, 1.0, Event::Decide);
    apply(&mut engine, 1.0, Event::Reported(id("b"), progress(6, 11.0, 0, 0.0)));
    engine.set_policy(choosing([0.25, 0.25, 0.5]));
    let (frame, _) = decide(&mut engine, 2.0);
    let b = &frame.jobs[1];
    assert_eq!((b.loss, b.limit.cpu, b.limit.applied), (Some(1.5), Some(1.0), Some(0.25)));
    let chosen = NAMES.map(|name| engine.status(&id(name)).unwrap().chosen);
    assert_eq!(chosen, [0.25, 0.25, 0.5].map(Share::nearest));
}

#[test]
fn new_policy_starts_from_limits_in_force_and_keeps_pins() {
    let careful = LimiterSettings {
        slew: Some(Slew { max_decrease: 0.1, max_increase: None }),
        ..settings(Enforcement::Quota)
    };
    let mut engine = fixed([1.0, 1.0, 1.0], careful);
    apply(&mut engine, 0.0, Event::Pinned(id("c"), Share::nearest(0.3)));
    apply(&mut engine, 0.0, Event::Guarded(id("b"), Guard::Slew, false));
    written(&mut engine, 0.0, Event::Decide);
    engine.set_policy(choosing([0.5, 0.5, 0.5]));
    let changes = written(&mut engine, 1.0, Event::Decide);
    let to: Vec<_> = changes.iter().map(|change| (change.job.as_str(), change.to)).collect();
    assert_eq!(to, [("a", cap(0.9)), ("b", cap(0.5))], "a by one step, c not at all");
    assert_eq!(engine.status(&id("c")).unwrap().pinned, Some(Share::nearest(0.3)));
}

#[test]
fn invalid_settings_change_nothing() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    let bad = LimiterSettings {
        slew: Some(Slew { max_decrease: 7.0, max_increase: None }),
        ..settings(Enforcement::Shares)
    };
    assert!(engine.set_limiter(bad).unwrap_err().to_string().contains("slew.max_decrease \"7\""));
    let changes = written(&mut engine, 0.0, Event::Decide);
    assert!(
        changes.iter().all(|change| matches!(change.to, Setting::Cap(_))) && !changes.is_empty()
    );
    let good = LimiterSettings { slew: Some(Slew::default()), ..settings(Enforcement::Quota) };
    assert_eq!(engine.set_limiter(good), Ok(settings(Enforcement::Quota)), "the old settings");
    assert_eq!(engine.status(&id("a")).unwrap().guards, [Guard::Slew]);
}

#[test]
fn enforcement_switches_both_ways_after_limits_are_restored() {
    let mut engine = fixed([0.5, 0.25, 0.25], settings(Enforcement::Quota));
    let put_back = |engine: &mut Engine, t| {
        for name in NAMES {
            apply(engine, t, Event::Applied(id(name), Setting::Cap(Share::ALL)));
            apply(engine, t, Event::Applied(id(name), Setting::Weight(DEFAULT_WEIGHT)));
        }
    };
    let caps = written(&mut engine, 0.0, Event::Decide);
    engine.set_limiter(settings(Enforcement::Shares)).unwrap();
    put_back(&mut engine, 1.0);
    let weights = written(&mut engine, 1.0, Event::Decide);
    assert!(weights.iter().all(|change| matches!(change.to, Setting::Weight(_))), "{weights:?}");
    engine.set_limiter(settings(Enforcement::Quota)).unwrap();
    put_back(&mut engine, 2.0);
    assert_eq!(written(&mut engine, 2.0, Event::Decide), caps, "as at the start");
}
