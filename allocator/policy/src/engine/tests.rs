mod cluster;
mod orders;
mod replace;
mod ticks;

use paceline_wire::Progress;

use super::*;
use crate::limiter::Why;
use crate::params::Params;
use crate::policies::{FlowCon, Tradl, Unlimited};
use crate::variant::Variant;

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn cap(share: f64) -> Setting {
    Setting::Cap(Share::nearest(share))
}

fn spec(name: &str) -> JobSpec {
    JobSpec {
        id: id(name),
        node: None,
        fresh: true,
        in_force: Share::ALL,
        min: None,
        max: None,
        weight: 1.0,
        own_weight: 1024,
        age: None,
        max_slowdown: None,
        may_terminate: false,
        work: None,
        direction: None,
        targets: Targets::default(),
    }
}

fn progress(reports: u64, sum: f64, batches: u64, seconds: f64) -> Report {
    let json = serde_json::json!({
        "schema": 1, "job": "a", "pid": 7, "instance": "one", "source": "reporter",
        "state": "running", "started_at": 0.0, "now": 0.0, "step": reports, "epoch": null,
        "total_steps": null,
        "eval": {"name": "loss", "direction": "minimize", "value": null, "window": 5,
                 "updated_at": null, "count": reports, "sum": sum, "first": 4.0, "best": null,
                 "max_abs": 4.0},
        "batch_latency": {"count": batches, "sum": seconds, "last": null, "p50": null, "p95": null,
                          "p99": null},
        "targets": {"acceptable": 1.0, "objective": null, "batch_latency": null},
        "reached": {"acceptable_at": 12.0, "objective_at": null},
        "checkpoint": {"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                       "error": null},
        "dropped": 0, "rejected": 0});
    Report::from(&serde_json::from_value::<Progress>(json).unwrap())
}

fn at(seconds: f64) -> Moment {
    Moment::from_seconds(seconds)
}

/// An engine of two CPUs under FlowCon.
fn engine() -> Engine {
    let policy = FlowCon::new(Variant::Resolved, &Params::default()).unwrap();
    Engine::new("here".to_owned(), 2.0, None, Box::new(policy))
}

fn apply(engine: &mut Engine, t: f64, event: Event) {
    assert_eq!(engine.step(at(t), event), []);
}

fn decide(engine: &mut Engine, t: f64) -> (Frame, Decision) {
    let decided = |effect| match effect {
        Effect::Decided(decided) => Some(*decided),
        Effect::Set(_) | Effect::End(_) | Effect::WakeAt(_) => None,
    };
    engine.step(at(t), Event::Decide).into_iter().find_map(decided).unwrap()
}

fn used(cpu_seconds: f64) -> Reading {
    Reading { cpu_seconds, throttled_seconds: Some(0.0), memory: Some(0.1) }
}

#[test]
fn a_frame_holds_the_means_since_the_frame_before() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    apply(&mut engine, 0.0, Event::Used(id("a"), used(0.5)));
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(2, 8.0, 2, 1.0)));
    let (first, _) = decide(&mut engine, 1.0);
    assert_eq!(first.jobs[0].loss, Some(4.0));
    assert_eq!(first.jobs[0].usage.cpu, None, "one reading gives no rate");
    apply(&mut engine, 10.0, Event::Used(id("a"), used(10.5)));
    apply(&mut engine, 11.0, Event::Reported(id("a"), progress(6, 20.0, 6, 5.0)));
    let (second, _) = decide(&mut engine, 11.0);
    assert_eq!(second.jobs[0].loss, Some(3.0));
    assert_eq!(second.jobs[0].usage.cpu, Some(0.5), "10 CPU seconds in 10 s on 2 CPUs");
    let (third, _) = decide(&mut engine, 12.0);
    assert_eq!(third.jobs[0].loss, None, "no report since");
}

#[test]
fn remaining_work_is_known_where_a_job_reports_its_progress() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { work: Some(40.0), ..spec("a") }));
    let remaining = |engine: &mut Engine, t: f64| decide(engine, t).0.jobs[0].remaining;
    assert_eq!(remaining(&mut engine, 0.0), Some(40.0), "it has done nothing");
    let quarter = Report { done: Some(0.25), ..progress(1, 4.0, 1, 1.0) };
    apply(&mut engine, 1.0, Event::Reported(id("a"), quarter));
    assert_eq!(remaining(&mut engine, 1.0), Some(30.0));
    apply(&mut engine, 2.0, Event::Reported(id("a"), progress(2, 8.0, 2, 2.0)));
    assert_eq!(remaining(&mut engine, 2.0), None, "the number of steps is unknown");
}

#[test]
fn steps_of_a_report_appear_in_the_frame() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    let first = decide(&mut engine, 0.0).0.jobs.remove(0);
    assert_eq!((first.step, first.total_steps, first.cpu_seconds), (None, None, None));
    let steps = Steps {
        taken: Some(40),
        total: Some(900),
        expected: Some(600),
        to_acceptable: Some(71.5),
        to_objective: Some(102.0),
    };
    apply(&mut engine, 1.0, Event::Reported(id("a"), Report { steps, ..progress(1, 4.0, 1, 1.0) }));
    let job = decide(&mut engine, 1.0).0.jobs.remove(0);
    assert_eq!((job.step, job.total_steps, job.expected_steps), (Some(40), Some(900), Some(600)));
    assert_eq!((job.steps_to_acceptable, job.steps_to_objective), (Some(71.5), Some(102.0)));
}

#[test]
fn step_cpu_time_is_interpolated_to_the_time_of_the_report() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    let step = |engine: &mut Engine, t: f64, cpu_seconds: f64, (step, age): (u64, f64)| {
        apply(engine, t, Event::Used(id("a"), used(cpu_seconds)));
        let steps = Steps { taken: Some(step), ..Steps::default() };
        let report = Report { steps, age, ..progress(step, 4.0, step, 1.0) };
        apply(engine, t, Event::Reported(id("a"), report));
        let job = decide(engine, t).0.jobs.remove(0);
        (job.cpu_seconds, job.step_cpu_seconds)
    };
    assert_eq!(step(&mut engine, 1.0, 2.0, (10, 0.5)), (Some(2.0), Some(2.0)), "one reading");
    assert_eq!(step(&mut engine, 3.0, 6.0, (20, 0.5)), (Some(6.0), Some(5.0)));
    assert_eq!(step(&mut engine, 4.0, 7.0, (20, 0.0)), (Some(7.0), Some(5.0)), "the same step");
    assert_eq!(step(&mut engine, 5.0, 9.0, (30, 7.0)), (Some(9.0), Some(7.0)), "not before that");
}

#[test]
fn cpu_seconds_of_a_job_never_fall() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    for (t, read, expected) in [(1.0, 3.0, 3.0), (2.0, 8.0, 8.0), (3.0, 1.0, 9.0), (4.0, 2.5, 10.5)]
    {
        let reading = Reading { cpu_seconds: read, ..Reading::default() };
        apply(&mut engine, t, Event::Used(id("a"), reading));
        assert_eq!(decide(&mut engine, t).0.jobs[0].cpu_seconds, Some(expected));
    }
}

#[test]
fn job_already_running_is_measured_from_its_first_reading() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { fresh: false, ..spec("a") }));
    apply(&mut engine, 0.0, Event::Reported(id("a"), progress(1000, 9000.0, 0, 0.0)));
    assert_eq!(decide(&mut engine, 0.0).0.jobs[0].loss, None);
    apply(&mut engine, 5.0, Event::Reported(id("a"), progress(1001, 9001.0, 0, 0.0)));
    assert_eq!(decide(&mut engine, 5.0).0.jobs[0].loss, Some(1.0));
}

#[test]
fn restarted_process_is_measured_from_zero() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    apply(&mut engine, 0.0, Event::Reported(id("a"), progress(100, 100.0, 0, 0.0)));
    decide(&mut engine, 0.0);
    let again = Report { instance: "two".into(), ..progress(2, 8.0, 0, 0.0) };
    apply(&mut engine, 5.0, Event::Reported(id("a"), again));
    assert_eq!(decide(&mut engine, 5.0).0.jobs[0].loss, Some(4.0));
}

#[test]
fn a_batch_that_began_before_the_change_of_limit_is_not_counted() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 4.0, 10, 10.0)));
    decide(&mut engine, 1.0);
    // The batch that ends at 2 s began before the frame; the two that end by 4 s did not.
    apply(&mut engine, 2.0, Event::Reported(id("a"), progress(1, 4.0, 11, 19.0)));
    apply(&mut engine, 4.0, Event::Reported(id("a"), progress(1, 4.0, 13, 21.0)));
    assert_eq!(decide(&mut engine, 4.0).0.jobs[0].batch_latency, Some(1.0));
    apply(&mut engine, 5.0, Event::Reported(id("a"), progress(1, 4.0, 14, 22.0)));
    apply(&mut engine, 6.0, Event::Applied(id("a"), cap(0.5)));
    apply(&mut engine, 7.0, Event::Reported(id("a"), progress(1, 4.0, 15, 24.0)));
    assert_eq!(decide(&mut engine, 7.0).0.jobs[0].batch_latency, None);
}

#[test]
fn a_limit_counts_only_once_it_is_applied() {
    let mut engine = engine();
    apply(
        &mut engine,
        0.0,
        Event::Appeared(JobSpec { in_force: Share::nearest(0.5), ..spec("a") }),
    );
    let effects = engine.step(at(0.0), Event::Decide);
    let change = Change { job: id("a"), from: cap(0.5), to: cap(1.0), why: Why::Chosen };
    assert!(effects.contains(&Effect::Set(vec![change.clone()])));
    assert!(
        engine.step(at(1.0), Event::Decide).contains(&Effect::Set(vec![change])),
        "refused: decided again"
    );
    apply(&mut engine, 2.0, Event::Applied(id("a"), cap(1.0)));
    let settled = engine.step(at(3.0), Event::Decide);
    assert!(!settled.iter().any(|effect| matches!(effect, Effect::Set(_))));
    let (frame, _) = decide(&mut engine, 4.0);
    assert_eq!(frame.jobs[0].limit.applied, Some(1.0));
}

#[test]
fn a_silent_job_is_not_cut() {
    let mut engine = engine();
    for name in ["a", "b"] {
        apply(&mut engine, 0.0, Event::Appeared(spec(name)));
    }
    // Both fall, then stand still; "a" goes silent after that.
    for second in 0..20_u32 {
        let t = f64::from(second) * 10.0;
        let reports = u64::from(second) + 1;
        let sum = 4.0 + f64::from(second);
        for name in ["a", "b"] {
            apply(&mut engine, t, Event::Used(id(name), used(t)));
            if name == "b" || second < 4 {
                apply(&mut engine, t, Event::Reported(id(name), progress(reports, sum, 0, 0.0)));
            }
        }
        for effect in engine.step(at(t), Event::Decide) {
            if let Effect::Set(changes) = effect {
                assert!(t < 90.0 || changes.iter().all(|change| change.job != id("a")), "{t}");
            }
        }
    }
}

#[test]
fn job_with_little_cpu_may_report_seldom() {
    let mut engine = engine();
    for name in ["slow", "stuck"] {
        apply(&mut engine, 0.0, Event::Appeared(spec(name)));
    }
    // Both report once a CPU second for 10 s. Then one gets a fiftieth of that, and the other stops.
    for second in 0..=10_u32 {
        let t = f64::from(second);
        for name in ["slow", "stuck"] {
            apply(&mut engine, t, Event::Used(id(name), used(t)));
            let reports = u64::from(second);
            apply(&mut engine, t, Event::Reported(id(name), progress(reports, t, 0, 0.0)));
        }
    }
    for t in [60.0, 120.0] {
        apply(&mut engine, t, Event::Used(id("slow"), used(10.0 + (t - 10.0) / 50.0)));
        apply(&mut engine, t, Event::Used(id("stuck"), used(t)));
        let (frame, _) = decide(&mut engine, t);
        assert_eq!(
            [&frame.jobs[0], &frame.jobs[1]].map(|job| job.limit.held),
            [false, true],
            "{t}"
        );
    }
}

#[test]
fn process_that_hangs_after_a_restart_is_soon_silent() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    let mut report = |t: f64, instance: &str, reports: u64| {
        apply(&mut engine, t, Event::Used(id("a"), used(t)));
        let report = Report { instance: instance.into(), ..progress(reports, t, 0, 0.0) };
        apply(&mut engine, t, Event::Reported(id("a"), report));
    };
    for second in 1..=1000_u32 {
        report(f64::from(second), "one", u64::from(second));
    }
    // The new process reports every two seconds, and then only uses CPU.
    for count in 1..=5_u32 {
        report(1000.0 + 2.0 * f64::from(count), "two", u64::from(count));
    }
    apply(&mut engine, 1100.0, Event::Used(id("a"), used(1100.0)));
    assert!(decide(&mut engine, 1100.0).0.jobs[0].limit.held);
}

#[test]
fn a_job_that_reports_batches_alone_is_not_silent() {
    let mut engine = engine();
    for name in ["a", "b"] {
        apply(&mut engine, 0.0, Event::Appeared(spec(name)));
    }
    for second in 0..10_u32 {
        let t = f64::from(second) * 20.0;
        let batches = u64::from(second);
        apply(&mut engine, t, Event::Reported(id("a"), progress(0, 0.0, batches, t)));
        let (frame, _) = decide(&mut engine, t);
        assert!(!frame.jobs[0].limit.held, "{t}");
        assert_eq!(frame.jobs[1].limit.held, t > 40.0, "{t}");
    }
}

#[test]
fn label_overrides_the_endpoint_and_its_latched_targets() {
    let mut engine = engine();
    let targets = Targets { acceptable: Some(0.5), ..Targets::default() };
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { targets, ..spec("a") }));
    apply(&mut engine, 0.0, Event::Appeared(spec("b")));
    for name in ["a", "b"] {
        apply(&mut engine, 1.0, Event::Reported(id(name), progress(1, 1.0, 0, 0.0)));
    }
    let (frame, _) = decide(&mut engine, 1.0);
    assert_eq!(
        frame.jobs.iter().map(|job| job.reached.acceptable).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(frame.jobs[0].targets.acceptable, Some(0.5));
}

#[test]
fn replaying_the_frames_gives_the_decisions() {
    let mut engine = engine();
    let mut recorded = Vec::new();
    apply(&mut engine, 0.0, Event::Appeared(spec("a")));
    for second in 0..12_u32 {
        let t = f64::from(second) * 20.0;
        if second == 5 {
            apply(&mut engine, t, Event::Appeared(spec("b")));
        }
        let sum = (0..=second).map(|n| 4.0 / (1.0 + f64::from(n))).sum();
        for name in ["a", "b"] {
            apply(&mut engine, t, Event::Used(id(name), used(t)));
            apply(
                &mut engine,
                t,
                Event::Reported(id(name), progress(u64::from(second) + 1, sum, 0, 0.0)),
            );
        }
        recorded.push(decide(&mut engine, t));
    }
    let mut policy = FlowCon::new(Variant::Resolved, &Params::default()).unwrap();
    for (frame, decision) in recorded {
        let line = serde_json::to_string(&frame).unwrap();
        assert_eq!(policy.decide(&Frame::parse(&line).unwrap()), decision);
    }
}

#[test]
fn a_job_at_its_objective_is_ended_once() {
    let policy = Tradl::new(Variant::Published, &Params::default()).unwrap();
    let mut engine = Engine::new("here".to_owned(), 2.0, None, Box::new(policy));
    let targets = Targets { objective: Some(5.0), ..Targets::default() };
    let may = JobSpec { targets, may_terminate: true, ..spec("a") };
    apply(&mut engine, 0.0, Event::Appeared(may));
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { targets, ..spec("b") }));
    let ended: Vec<Vec<Effect>> = (1..4_u32)
        .map(|n| {
            let t = f64::from(n);
            for name in ["a", "b"] {
                let reported = progress(u64::from(n), 4.0 * t, 0, 0.0);
                apply(&mut engine, t, Event::Reported(id(name), reported));
            }
            let effects = engine.step(at(t), Event::Decide);
            effects.into_iter().filter(|effect| matches!(effect, Effect::End(_))).collect()
        })
        .collect();
    assert_eq!(ended, [vec![Effect::End(vec![id("a")])], vec![], vec![]]);
}

#[test]
fn job_that_could_not_be_ended_is_ended_by_the_next_decision() {
    let policy = Tradl::new(Variant::Published, &Params::default()).unwrap();
    let mut engine = Engine::new("here".to_owned(), 2.0, None, Box::new(policy));
    let targets = Targets { objective: Some(5.0), ..Targets::default() };
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { targets, may_terminate: true, ..spec("a") }));
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 4.0, 0, 0.0)));
    let ends = |engine: &mut Engine, t: f64| {
        engine.step(at(t), Event::Decide).contains(&Effect::End(vec![id("a")]))
    };
    assert!(ends(&mut engine, 1.0) && !ends(&mut engine, 2.0));
    apply(&mut engine, 2.5, Event::NotEnded(id("a")));
    assert!(ends(&mut engine, 3.0) && !ends(&mut engine, 4.0));
}

#[test]
fn impossible_batches_count_as_none() {
    let mut engine = engine();
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { age: Some(5.0), ..spec("a") }));
    apply(&mut engine, 1.0, Event::Reported(id("a"), progress(1, 4.0, 10, 1.0)));
    apply(&mut engine, 2.0, Event::Reported(id("a"), progress(2, 8.0, 11, 1.1)));
    // A batch that began before its container.
    apply(&mut engine, 3.0, Event::Reported(id("a"), progress(3, 12.0, 12, 1000.0)));
    let (frame, _) = decide(&mut engine, 4.0);
    let latency = frame.jobs[0].batch_latency.unwrap();
    assert!((latency - 0.1).abs() < 1e-9, "{latency}");
    assert_eq!(frame.jobs[0].loss, Some(4.0), "its loss counts");
}

#[test]
fn changed_bound_of_the_owner_holds_at_the_next_tick() {
    let none = Unlimited::new(&Params::default()).unwrap();
    let mut engine = Engine::new("here".to_owned(), 2.0, None, Box::new(none));
    let half = Some(Share::nearest(0.5));
    let in_force = Share::nearest(0.5);
    apply(&mut engine, 0.0, Event::Appeared(JobSpec { max: half, in_force, ..spec("a") }));
    decide(&mut engine, 0.0);
    assert_eq!(engine.status(&id("a")).unwrap().in_force.cap, in_force);
    assert_eq!(engine.step(at(1.0), Event::Tick), [], "its owner's cap is not lifted");
    apply(&mut engine, 2.0, Event::Bounded(id("a"), None));
    let lifted = engine.step(at(2.0), Event::Decide);
    let set = |effect: &Effect| matches!(effect, Effect::Set(changes) if changes[0].to == cap(1.0));
    assert!(lifted.iter().any(set), "{lifted:?}");
}
