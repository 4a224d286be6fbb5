//! Ticks between decisions.

use super::*;
use crate::limiter::{Canary, Enforcement, Fairness, Slew};
use crate::policies::Unlimited;

/// A policy that always chooses the same.
#[derive(Debug)]
pub(super) struct Fixed(pub(super) PerJob<Share>);

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let mut none = Unlimited::new(&Params::default()).unwrap();
        Decision { limits: self.0.clone(), ..none.decide(frame) }
    }
}

/// Two jobs on two CPUs: read once a second, and changes apply at once.
struct TestEnv {
    engine: Engine,
    caps: Vec<f64>,
    used: [f64; 2],
    t: f64,
}

const NAMES: [&str; 2] = ["a", "b"];

impl TestEnv {
    fn new(shares: [f64; 2], settings: LimiterSettings) -> Self {
        let limits = NAMES.into_iter().zip(shares);
        let limits = limits.map(|(name, share)| (id(name), Share::nearest(share))).collect();
        let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
        let engine = engine.with_limiter(settings).unwrap();
        let mut env = Self { engine, caps: vec![1.0; 2], used: [0.0; 2], t: 0.0 };
        for name in NAMES {
            apply(&mut env.engine, 0.0, Event::Appeared(spec(name)));
        }
        env.read();
        env.step(Event::Decide);
        env
    }

    /// Delivers all readings.
    fn read(&mut self) {
        for (name, used) in NAMES.into_iter().zip(self.used) {
            let reports = 1 + at(self.t).elapsed().as_secs();
            apply(&mut self.engine, self.t, Event::Used(id(name), super::used(2.0 * used)));
            let progress = progress(reports, 1.0, 0, 0.0);
            apply(&mut self.engine, self.t, Event::Reported(id(name), progress));
        }
    }

    /// A second in which the jobs use this much of the node.
    fn pass(&mut self, usage: [f64; 2]) {
        self.t += 1.0;
        for (used, usage) in self.used.iter_mut().zip(usage) {
            *used += usage;
        }
        self.read();
    }

    /// Applies the changes; returns how many settings were written.
    fn step(&mut self, event: Event) -> usize {
        let mut written = 0;
        for effect in self.engine.step(at(self.t), event) {
            let Effect::Set(changes) = effect else { continue };
            for Change { job, to, .. } in changes {
                if let (Setting::Cap(share), Some(at)) =
                    (to, NAMES.iter().position(|name| *name == job.as_str()))
                {
                    self.caps[at] = share.get();
                }
                apply(&mut self.engine, self.t, Event::Applied(job, to));
                written += 1;
            }
        }
        written
    }
}

#[test]
fn idle_share_is_lent_in_two_ticks_and_returned_at_the_next() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    assert_eq!(env.caps, [0.25, 0.75]);
    for _ in 0..2 {
        env.pass([env.caps[0], 0.004]);
        env.step(Event::Tick);
    }
    assert!(env.caps[0] >= 0.9, "{:?}", env.caps);
    env.pass([env.caps[0], 0.3]);
    env.step(Event::Tick);
    assert_eq!(env.caps, [0.25, 0.75]);
}

/// A second in which the first job wants 0.6 of the node and the other one nothing, and a tick.
fn second(env: &mut TestEnv) -> usize {
    env.pass([env.caps[0].min(0.6), 0.004]);
    env.step(Event::Tick)
}

/// Ticks for as long as they are needed; returns their number.
fn settle(env: &mut TestEnv) -> usize {
    let mut ticks = 0;
    while env.engine.needs_ticks(at(env.t)) {
        second(env);
        ticks += 1;
        assert!(ticks < 10, "{:?}", env.caps);
    }
    ticks
}

#[test]
fn ticks_are_unneeded_once_loans_are_stable() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    let ticks = settle(&mut env);
    assert!(ticks > 1 && env.caps[0] > 0.6, "{ticks}: {:?}", env.caps);
    for _ in 0..5 {
        assert_eq!(second(&mut env), 0);
    }
    env.step(Event::Decide);
    assert!(env.engine.needs_ticks(at(env.t)), "a decision may change what is lent");
}

#[test]
fn tick_is_not_stable_if_its_sample_predates_the_last_event() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    settle(&mut env);
    apply(&mut env.engine, env.t + 0.3, Event::Targets(id("a"), Targets::default()));
    assert_eq!(settle(&mut env), 2);
    apply(&mut env.engine, env.t, Event::Targets(id("a"), Targets::default()));
    assert_eq!(settle(&mut env), 1);
}

#[test]
fn change_of_one_job_restarts_the_windows_of_the_others() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    settle(&mut env);
    let changed = env.t + 0.3;
    env.t = changed;
    env.read();
    apply(&mut env.engine, changed, Event::Pinned(id("a"), Share::nearest(0.5)));
    assert_eq!(env.step(Event::Tick), 1);
    env.pass([0.5, 0.4]);
    env.step(Event::Tick);
    let other = env.engine.jobs.get(&id("b")).unwrap();
    assert!(other.sampled_only_since(at(changed)), "usage beside the old limit counts");
}

#[test]
fn lending_changes_the_limit_in_force_but_not_the_choice() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    env.pass([0.25, 0.0]);
    env.step(Event::Tick);
    let (frame, _) = decide(&mut env.engine, env.t);
    let limit = frame.jobs[0].limit;
    assert_eq!(limit.cpu, Some(0.25));
    assert_eq!(limit.applied, Some(env.caps[0]));
    assert!(env.caps[0] > 0.9);
}

#[test]
fn tick_and_decision_at_the_same_time_agree() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    env.pass([0.25, 0.0]);
    assert_eq!(env.step(Event::Tick), 1);
    for event in [Event::Tick, Event::Decide, Event::Tick, Event::Decide] {
        assert_eq!(env.step(event), 0);
    }
    // A tick that follows closely changes nothing either: the window is too short.
    env.t += 0.02;
    env.read();
    for event in [Event::Decide, Event::Tick] {
        assert_eq!(env.step(event), 0);
    }
    assert!(env.caps[0] > 0.9);
}

#[test]
fn tick_before_the_first_decision_changes_nothing() {
    let mut engine = engine();
    apply(
        &mut engine,
        0.0,
        Event::Appeared(JobSpec { in_force: Share::nearest(0.5), ..spec("a") }),
    );
    apply(&mut engine, 0.0, Event::Tick);
}

#[test]
fn refused_change_is_not_retried_at_every_tick() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    let mut asked = Vec::new();
    for second in 0..12 {
        env.pass([0.25, 0.0]);
        if !env.engine.step(at(env.t), Event::Tick).is_empty() {
            asked.push(second);
        }
    }
    assert_eq!(asked, [0, 5, 10]);
    let effects = env.engine.step(at(env.t), Event::Decide);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Set(_))));
}

#[test]
fn plain_quotas_are_not_lent() {
    let hard = LimiterSettings { enforcement: Enforcement::Quota, ..LimiterSettings::default() };
    let mut env = TestEnv::new([0.25, 0.75], hard);
    for _ in 0..5 {
        env.pass([0.25, 0.0]);
        assert_eq!(env.step(Event::Tick), 0);
    }
}

#[test]
fn shares_are_written_as_weights() {
    let soft = LimiterSettings { enforcement: Enforcement::Shares, ..LimiterSettings::default() };
    let mut env = TestEnv::new([0.25, 0.75], soft);
    assert_eq!(env.caps, [1.0, 1.0]);
    let weight = |env: &TestEnv, name| env.engine.jobs.get(&id(name)).unwrap().in_force.weight;
    let weights = |env: &TestEnv| NAMES.map(|name| weight(env, name));
    assert_eq!(weights(&env), [512, 1536]);
    env.pass([0.25, 0.75]);
    assert_eq!(env.step(Event::Tick) + env.step(Event::Decide), 0);
}

#[test]
fn a_guard_acts_between_decisions_and_is_counted() {
    let settings = LimiterSettings {
        enforcement: Enforcement::Quota,
        fairness: Some(Fairness::default()),
        ..LimiterSettings::default()
    };
    let mut env = TestEnv::new([0.1, 1.0], settings);
    while env.caps[0] < 0.5 && env.t < 10.0 {
        env.pass([0.1, 0.9]);
        env.step(Event::Tick);
    }
    assert_eq!(env.caps, [0.5, 1.0]);
    assert_eq!(env.engine.counters().raised, 1);
}

#[test]
fn cut_that_breaks_a_latency_target_is_undone_at_a_tick() {
    let settings = LimiterSettings {
        enforcement: Enforcement::Quota,
        canary: Some(Canary::default()),
        ..LimiterSettings::default()
    };
    let limits = PerJob::from_iter([(id("a"), Share::nearest(0.25))]);
    let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
    let mut engine = engine.with_limiter(settings).unwrap();
    let targets = Targets { batch_latency: Some(0.2), ..Targets::default() };
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { targets, ..spec("a") }));
    apply(&mut engine, 0.0, Event::Reported(id("a"), progress(1, 1.0, 10, 1.0)));
    apply(&mut engine, 0.1, Event::Reported(id("a"), progress(1, 1.0, 11, 1.1)));
    apply(&mut engine, 0.1, Event::Tick);
    // The first cut starts from the limit before the job was managed.
    let cut = engine.step(at(0.2), Event::Decide);
    assert!(cut.iter().any(|effect| matches!(effect, Effect::Set(_))));
    apply(&mut engine, 0.2, Event::Applied(id("a"), cap(0.25)));
    // The batch that straddles the cut does not count; the next one took 0.4 s.
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 1.0, 12, 2.0)));
    apply(&mut engine, 1.0, Event::Tick);
    apply(&mut engine, 2.0, Event::Reported(id("a"), progress(1, 1.0, 13, 2.4)));
    let effects = engine.step(at(2.0), Event::Tick);
    let [Effect::Set(changes)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((changes[0].from, changes[0].to), (cap(0.25), cap(1.0)));
    assert!(matches!(changes[0].why, Why::RolledBack { .. }));
    assert_eq!(engine.counters().rolled_back, 1);
}

#[test]
fn restarted_process_is_sampled_by_its_own_batches() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    let latency = |engine: &mut Engine, t| engine.views(at(t))[0].batch_latency;
    for (t, batches, seconds) in [(0.0, 100, 10.0), (1.0, 110, 11.0)] {
        apply(&mut engine, t, Event::Reported(id("a"), progress(1, 1.0, batches, seconds)));
    }
    assert_eq!(latency(&mut engine, 1.0), Some(0.1));
    for (t, batches, seconds) in [(2.0, 1, 5.0), (3.0, 3, 6.0)] {
        let again = progress(1, 1.0, batches, seconds);
        let again = Report { instance: "two".into(), ..again };
        apply(&mut engine, t, Event::Reported(id("a"), again));
    }
    assert_eq!(latency(&mut engine, 3.0), Some(0.5));
}

#[test]
fn usage_before_a_cap_does_not_count_as_pressing_on_it() {
    let mut env = TestEnv::new([1.0, 0.25], LimiterSettings::default());
    env.pass([0.0, 0.25]);
    env.step(Event::Tick);
    env.t += 0.6;
    env.used[0] += 0.5;
    env.read();
    apply(&mut env.engine, env.t, Event::Applied(id("a"), cap(0.25)));
    env.t += 0.6;
    env.used[0] += 0.05;
    env.read();
    let view = &env.engine.views(at(env.t))[0];
    assert!(!view.pressed && view.usage.is_some_and(|usage| usage < 0.1), "{view:?}");
}

#[test]
fn a_job_that_comes_back_between_two_decisions_is_new() {
    let slew = Some(Slew { max_decrease: 0.5, max_increase: None });
    let settings = LimiterSettings { slew, ..LimiterSettings::default() };
    let mut env = TestEnv::new([0.1, 1.0], settings);
    assert!((env.caps[0] - 0.5).abs() < 1e-9);
    apply(&mut env.engine, 1.0, Event::Gone(id("a")));
    apply(&mut env.engine, 1.0, Event::Appeared(spec("a")));
    env.t = 2.0;
    env.read();
    env.step(Event::Decide);
    assert!((env.caps[0] - 0.5).abs() < 1e-9, "one step from what is in force: {:?}", env.caps);
}

#[test]
fn loan_of_a_silent_job_is_kept() {
    let mut env = TestEnv::new([0.25, 0.75], LimiterSettings::default());
    env.pass([0.25, 0.0]);
    env.step(Event::Tick);
    let lent = env.caps[0];
    // From here on no job reports, while the lender uses its share.
    for _ in 0..60 {
        env.t += 1.0;
        env.used[0] += 0.25;
        env.used[1] += 0.75;
        for (name, used) in NAMES.into_iter().zip(env.used) {
            apply(&mut env.engine, env.t, Event::Used(id(name), super::used(2.0 * used)));
        }
        if env.t > 50.0 {
            env.step(Event::Tick);
        }
    }
    assert!((env.caps[0] - lent).abs() < 1e-12);
}
