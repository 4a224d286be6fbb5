//! What looks between decisions do.

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

/// Two jobs on two CPUs, observed once a second and obeyed at once.
struct Bed {
    engine: Engine,
    caps: Vec<f64>,
    used: [f64; 2],
    t: f64,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Bed {
    fn new(shares: [f64; 2], settings: LimiterSettings) -> Self {
        let limits = NAMES.into_iter().zip(shares);
        let limits = limits.map(|(name, share)| (id(name), Share::nearest(share))).collect();
        let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
        let engine = engine.limited_by(settings).unwrap();
        let mut bed = Self { engine, caps: vec![1.0; 2], used: [0.0; 2], t: 0.0 };
        for name in NAMES {
            tell(&mut bed.engine, 0.0, Event::Appeared(spec(name)));
        }
        bed.read();
        bed.step(Event::Decide);
        bed
    }

    /// Reads all there is.
    fn read(&mut self) {
        for (name, used) in NAMES.into_iter().zip(self.used) {
            let reports = 1 + at(self.t).elapsed().as_secs();
            tell(&mut self.engine, self.t, Event::Used(id(name), super::used(2.0 * used)));
            let progress = progress(reports, 1.0, 0, 0.0);
            tell(&mut self.engine, self.t, Event::Reported(id(name), progress));
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

    /// Obeys; returns how many settings were written.
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
                tell(&mut self.engine, self.t, Event::Applied(job, to));
                written += 1;
            }
        }
        written
    }
}

#[test]
fn an_idle_share_is_lent_within_two_looks_and_taken_back_at_the_next() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    assert_eq!(bed.caps, [0.25, 0.75]);
    for _ in 0..2 {
        bed.pass([bed.caps[0], 0.004]);
        bed.step(Event::Look);
    }
    assert!(bed.caps[0] >= 0.9, "{:?}", bed.caps);
    bed.pass([bed.caps[0], 0.3]);
    bed.step(Event::Look);
    assert_eq!(bed.caps, [0.25, 0.75]);
}

/// A second in which the first job wants 0.6 of the node and the other one nothing, and a look.
fn second(bed: &mut Bed) -> usize {
    bed.pass([bed.caps[0].min(0.6), 0.004]);
    bed.step(Event::Look)
}

/// Looks for as long as that is of use; returns how many looks it took.
fn settle(bed: &mut Bed) -> usize {
    let mut looks = 0;
    while bed.engine.has_use_for_looks(at(bed.t)) {
        second(bed);
        looks += 1;
        assert!(looks < 10, "{:?}", bed.caps);
    }
    looks
}

#[test]
fn looks_are_of_no_use_once_it_is_settled_who_is_lent_what() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    let looks = settle(&mut bed);
    assert!(looks > 1 && bed.caps[0] > 0.6, "{looks}: {:?}", bed.caps);
    for _ in 0..5 {
        assert_eq!(second(&mut bed), 0);
    }
    bed.step(Event::Decide);
    assert!(bed.engine.has_use_for_looks(at(bed.t)), "a decision may change what is lent");
}

#[test]
fn a_look_settles_nothing_if_part_of_what_it_saw_is_older_than_what_happened_last() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    settle(&mut bed);
    tell(&mut bed.engine, bed.t + 0.3, Event::Targets(id("a"), Targets::default()));
    assert_eq!(settle(&mut bed), 2);
    tell(&mut bed.engine, bed.t, Event::Targets(id("a"), Targets::default()));
    assert_eq!(settle(&mut bed), 1);
}

#[test]
fn a_change_for_one_job_ends_the_time_that_others_were_seen_over() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    settle(&mut bed);
    let changed = bed.t + 0.3;
    bed.t = changed;
    bed.read();
    tell(&mut bed.engine, changed, Event::Pinned(id("a"), Share::nearest(0.5)));
    assert_eq!(bed.step(Event::Look), 1);
    bed.pass([0.5, 0.4]);
    bed.step(Event::Look);
    let other = bed.engine.jobs.get(&id("b")).unwrap();
    assert!(other.saw_only_since(at(changed)), "what it used beside the limit before counts");
}

#[test]
fn lending_changes_what_is_in_force_and_not_what_the_policy_chose() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    bed.pass([0.25, 0.0]);
    bed.step(Event::Look);
    let (frame, _) = decide(&mut bed.engine, bed.t);
    let limit = frame.jobs[0].limit;
    assert_eq!(limit.cpu, Some(0.25));
    assert_eq!(limit.applied, Some(bed.caps[0]));
    assert!(bed.caps[0] > 0.9);
}

#[test]
fn a_look_and_a_decision_at_one_moment_agree() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    bed.pass([0.25, 0.0]);
    assert_eq!(bed.step(Event::Look), 1);
    for event in [Event::Look, Event::Decide, Event::Look, Event::Decide] {
        assert_eq!(bed.step(event), 0);
    }
    // Nor does one that follows closely: what a job used within so little time says nothing.
    bed.t += 0.02;
    bed.read();
    for event in [Event::Decide, Event::Look] {
        assert_eq!(bed.step(event), 0);
    }
    assert!(bed.caps[0] > 0.9);
}

#[test]
fn before_the_first_decision_a_look_changes_nothing() {
    let mut engine = engine();
    tell(&mut engine, 0.0, Event::Appeared(JobSpec { in_force: Share::nearest(0.5), ..spec("a") }));
    tell(&mut engine, 0.0, Event::Look);
}

#[test]
fn what_was_refused_is_not_asked_for_at_every_look() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    let mut asked = Vec::new();
    for second in 0..12 {
        bed.pass([0.25, 0.0]);
        if !bed.engine.step(at(bed.t), Event::Look).is_empty() {
            asked.push(second);
        }
    }
    assert_eq!(asked, [0, 5, 10]);
    let effects = bed.engine.step(at(bed.t), Event::Decide);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Set(_))));
}

#[test]
fn quotas_alone_are_not_lent() {
    let hard = LimiterSettings { enforcement: Enforcement::Quota, ..LimiterSettings::default() };
    let mut bed = Bed::new([0.25, 0.75], hard);
    for _ in 0..5 {
        bed.pass([0.25, 0.0]);
        assert_eq!(bed.step(Event::Look), 0);
    }
}

#[test]
fn shares_are_written_as_weights() {
    let soft = LimiterSettings { enforcement: Enforcement::Shares, ..LimiterSettings::default() };
    let mut bed = Bed::new([0.25, 0.75], soft);
    assert_eq!(bed.caps, [1.0, 1.0]);
    let weight = |bed: &Bed, name| bed.engine.jobs.get(&id(name)).unwrap().in_force.weight;
    let weights = |bed: &Bed| NAMES.map(|name| weight(bed, name));
    assert_eq!(weights(&bed), [512, 1536]);
    bed.pass([0.25, 0.75]);
    assert_eq!(bed.step(Event::Look) + bed.step(Event::Decide), 0);
}

#[test]
fn a_guard_acts_between_decisions_and_is_counted() {
    let settings = LimiterSettings {
        enforcement: Enforcement::Quota,
        fairness: Some(Fairness::default()),
        ..LimiterSettings::default()
    };
    let mut bed = Bed::new([0.1, 1.0], settings);
    while bed.caps[0] < 0.5 && bed.t < 10.0 {
        bed.pass([0.1, 0.9]);
        bed.step(Event::Look);
    }
    assert_eq!(bed.caps, [0.5, 1.0]);
    assert_eq!(bed.engine.counters().raised, 1);
}

#[test]
fn a_cut_that_breaks_a_jobs_budget_is_undone_at_a_look() {
    let settings = LimiterSettings {
        enforcement: Enforcement::Quota,
        canary: Some(Canary::default()),
        ..LimiterSettings::default()
    };
    let limits = PerJob::from_iter([(id("a"), Share::nearest(0.25))]);
    let engine = Engine::new("here".to_owned(), 2.0, None, Box::new(Fixed(limits)));
    let mut engine = engine.limited_by(settings).unwrap();
    let targets = Targets { batch_latency: Some(0.2), ..Targets::default() };
    tell(&mut engine, 0.0, Event::Appeared(JobSpec { targets, ..spec("a") }));
    tell(&mut engine, 0.0, Event::Reported(id("a"), progress(1, 1.0, 10, 1.0)));
    tell(&mut engine, 0.1, Event::Reported(id("a"), progress(1, 1.0, 11, 1.1)));
    tell(&mut engine, 0.1, Event::Look);
    // What it had before it was managed is what the first cut is from.
    let cut = engine.step(at(0.2), Event::Decide);
    assert!(cut.iter().any(|effect| matches!(effect, Effect::Set(_))));
    tell(&mut engine, 0.2, Event::Applied(id("a"), cap(0.25)));
    // The batch that straddles the cut does not count; the next one took 0.4 s.
    tell(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 1.0, 12, 2.0)));
    tell(&mut engine, 1.0, Event::Look);
    tell(&mut engine, 2.0, Event::Reported(id("a"), progress(1, 1.0, 13, 2.4)));
    let effects = engine.step(at(2.0), Event::Look);
    let [Effect::Set(changes)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((changes[0].from, changes[0].to), (cap(0.25), cap(1.0)));
    assert!(matches!(changes[0].why, Why::RolledBack { .. }));
    assert_eq!(engine.counters().rolled_back, 1);
}

#[test]
fn a_process_that_began_anew_is_looked_at_by_its_own_batches() {
    let mut engine = engine();
    tell(&mut engine, 0.0, Event::Appeared(spec("a")));
    let latency = |engine: &mut Engine, t| engine.views(at(t))[0].batch_latency;
    for (t, batches, seconds) in [(0.0, 100, 10.0), (1.0, 110, 11.0)] {
        tell(&mut engine, t, Event::Reported(id("a"), progress(1, 1.0, batches, seconds)));
    }
    assert_eq!(latency(&mut engine, 1.0), Some(0.1));
    for (t, batches, seconds) in [(2.0, 1, 5.0), (3.0, 3, 6.0)] {
        let again = progress(1, 1.0, batches, seconds);
        let again = Report { instance: "two".into(), ..again };
        tell(&mut engine, t, Event::Reported(id("a"), again));
    }
    assert_eq!(latency(&mut engine, 3.0), Some(0.5));
}

#[test]
fn what_a_job_used_before_its_cap_does_not_show_that_it_presses_on_it() {
    let mut bed = Bed::new([1.0, 0.25], LimiterSettings::default());
    bed.pass([0.0, 0.25]);
    bed.step(Event::Look);
    bed.t += 0.6;
    bed.used[0] += 0.5;
    bed.read();
    tell(&mut bed.engine, bed.t, Event::Applied(id("a"), cap(0.25)));
    bed.t += 0.6;
    bed.used[0] += 0.05;
    bed.read();
    let view = &bed.engine.views(at(bed.t))[0];
    assert!(!view.pressed && view.usage.is_some_and(|usage| usage < 0.1), "{view:?}");
}

#[test]
fn a_job_that_comes_back_between_two_decisions_is_new() {
    let slew = Some(Slew { max_decrease: 0.5, max_increase: None });
    let settings = LimiterSettings { slew, ..LimiterSettings::default() };
    let mut bed = Bed::new([0.1, 1.0], settings);
    assert!((bed.caps[0] - 0.5).abs() < 1e-9);
    tell(&mut bed.engine, 1.0, Event::Gone(id("a")));
    tell(&mut bed.engine, 1.0, Event::Appeared(spec("a")));
    bed.t = 2.0;
    bed.read();
    bed.step(Event::Decide);
    assert!((bed.caps[0] - 0.5).abs() < 1e-9, "one step from what is in force: {:?}", bed.caps);
}

#[test]
fn a_silent_jobs_loan_is_left_alone() {
    let mut bed = Bed::new([0.25, 0.75], LimiterSettings::default());
    bed.pass([0.25, 0.0]);
    bed.step(Event::Look);
    let lent = bed.caps[0];
    // From here on nobody reports, while the owner works.
    for _ in 0..60 {
        bed.t += 1.0;
        bed.used[0] += 0.25;
        bed.used[1] += 0.75;
        for (name, used) in NAMES.into_iter().zip(bed.used) {
            tell(&mut bed.engine, bed.t, Event::Used(id(name), super::used(2.0 * used)));
        }
        if bed.t > 50.0 {
            bed.step(Event::Look);
        }
    }
    assert!((bed.caps[0] - lent).abs() < 1e-12);
}
