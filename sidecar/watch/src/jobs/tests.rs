use std::time::Duration;

use paceline_wire::Rank;
use serde_json::json;

use super::*;
use crate::clock;

/// A job in the middle of its run.
pub(crate) fn example() -> Progress {
    serde_json::from_value(json!({
        "schema": 1, "job": "vae", "pid": 7, "instance": "01J", "source": "reporter",
        "state": "running", "started_at": 1_760_000_000.0, "now": 1_760_000_600.0,
        "step": 1200, "epoch": 3, "total_steps": 4000,
        "eval": {"name": "loss", "direction": "minimize", "value": 118.2, "window": 5,
            "updated_at": 1_760_000_599.5, "count": 1200, "sum": 164_012.7, "first": 540.1,
            "best": 117.9, "max_abs": 543.0},
        "batch_latency": {"count": 1200, "sum": 41.2, "last": 0.031, "p50": 0.030, "p95": 0.044,
            "p99": 0.071},
        "targets": {"acceptable": 120.0, "objective": 110.0, "batch_latency": 0.05},
        "reached": {"acceptable_at": 1_760_000_540.0, "objective_at": null},
        "checkpoint": {"requested": 1, "saved": 1, "step": 1100, "path": "/ckpt/vae.safetensors",
            "at": 1_760_000_555.0, "error": null},
        "validation": {"value": 121.0, "best": 120.5, "count": 3, "updated_at": 1_760_000_500.0},
        "signals": {"activity": "training", "quiet_seconds": 0.4, "health": "fine",
            "loss_smoothed": 118.6, "steps_per_second": 2.0, "progress_ratio": 0.3,
            "eta_seconds": 1400.0,
            "to_objective": {"seconds": 300.0, "low": 200.0, "high": 500.0}},
        "cpu": {"quota": 1.5, "threads": 2, "periods": 6000, "throttled_periods": 720,
            "throttled_seconds": 12.5, "throttled_ratio": 0.12, "pressure": 0.034},
        "dropped": 0, "rejected": 0
    }))
    .unwrap()
}

/// The past of [`example`].
pub(crate) fn example_past(instance: &str) -> History {
    let steps: Vec<u32> = (1..=60).collect();
    let at = |step: &u32| 1_760_000_000.0 + 10.0 * f64::from(*step);
    let loss = |step: &u32| 110.0 + 430.0 / f64::from(*step);
    History {
        schema: 1,
        instance: instance.to_owned(),
        started_at: 1_760_000_000.0,
        from: steps.iter().map(|step| at(step) - 10.0).collect(),
        to: steps.iter().map(at).collect(),
        step: steps.iter().map(|step| Some(u64::from(20 * step))).collect(),
        loss: steps.iter().map(|step| Some(loss(step) + f64::from(step % 3))).collect(),
        loss_smoothed: steps.iter().map(|step| Some(loss(step))).collect(),
        validation: steps.iter().map(|step| (step % 20 == 0).then(|| loss(step) + 3.0)).collect(),
        ..History::default()
    }
}

fn of(instance: &str, change: impl FnOnce(&mut Progress)) -> Progress {
    let mut progress = example();
    instance.clone_into(&mut progress.instance);
    change(&mut progress);
    progress
}

fn taken(answers: &[(u16, Result<Progress, Failure>)]) -> Jobs {
    let mut jobs = Jobs::default();
    for (port, answer) in answers {
        jobs.take(&Address::local(*port), answer.clone(), clock::now());
    }
    jobs
}

fn gone() -> Result<Progress, Failure> {
    Err(Failure::Absent("Connection refused".to_owned()))
}

fn standings(jobs: &Jobs) -> Vec<(String, Standing)> {
    jobs.iter().map(|job| (job.progress.instance.clone(), job.standing)).collect()
}

#[test]
fn job_that_ended_stays_and_one_that_never_was_does_not_appear() {
    let jobs = taken(&[(7223, Ok(of("a", |_| ()))), (7223, gone()), (7230, gone())]);
    assert_eq!(standings(&jobs), [("a".to_owned(), Standing::Gone)]);
    assert!(jobs.addresses().is_empty());
}

#[test]
fn silent_job_is_silent_until_it_answers_again() {
    let running = || Ok(of("a", |_| ()));
    let mut jobs = taken(&[(7223, running()), (7223, Err(Failure::Silent))]);
    assert_eq!(standings(&jobs), [("a".to_owned(), Standing::Silent)]);
    assert!(!jobs.addresses().is_empty());
    jobs.take(&Address::local(7223), running(), clock::now());
    assert_eq!(standings(&jobs), [("a".to_owned(), Standing::Answers)]);
}

#[test]
fn next_process_at_an_address_is_another_job() {
    let jobs = taken(&[(7223, Ok(of("a", |_| ()))), (7223, Ok(of("b", |_| ())))]);
    let standings = standings(&jobs);
    assert_eq!(standings, [("a".to_owned(), Standing::Gone), ("b".to_owned(), Standing::Answers)]);
    assert_eq!(jobs.by_key("7223").unwrap().progress.instance, "b");
}

#[test]
fn one_endpoint_with_two_addresses_is_one_job() {
    let mut jobs = taken(&[(7223, Ok(of("a", |_| ())))]);
    let other = "localhost:7223".parse().unwrap();
    jobs.take(&other, Ok(of("a", |_| ())), clock::now());
    assert_eq!(jobs.iter().count(), 1);
    assert!(jobs.by_key("7223").is_some());
}

#[test]
fn answer_that_is_late_does_not_hide_the_end() {
    let ended = of("a", |progress| progress.state = State::Finished);
    let jobs = taken(&[(7223, Ok(ended)), (7223, Ok(of("a", |_| ())))]);
    assert_eq!(jobs.by_key("7223").unwrap().progress.state, State::Finished);
}

#[test]
fn ranks_of_one_job_are_one_group() {
    let rank = |instance: &str, global, world| {
        let rank = Some(Rank { global, local: Some(global), world: Some(world) });
        Ok(of(instance, |progress| progress.rank = rank))
    };
    let jobs = taken(&[
        (7231, rank("b", 1, 2)),
        (7223, rank("a", 0, 2)),
        (7232, rank("c", 1, 2)),
        (7233, rank("d", 0, 3)),
        (7234, Ok(of("e", |_| ()))),
        (7235, Ok(of("f", |_| ()))),
    ]);
    let groups: Vec<Vec<_>> = jobs
        .groups()
        .iter()
        .map(|group| group.ranks.iter().map(|job| job.progress.instance.clone()).collect())
        .collect();
    assert_eq!(groups, [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"]]);
    assert_eq!(jobs.groups()[0].head.address, Address::local(7223));
}

#[test]
fn jobs_that_are_over_come_last() {
    let jobs = taken(&[
        (1, Ok(of("a", |progress| progress.state = State::Failed))),
        (2, Ok(of("b", |progress| progress.started_at += 5.0))),
        (3, Ok(of("c", |_| ()))),
    ]);
    let groups = jobs.groups();
    let order: Vec<_> = groups.iter().map(|group| group.head.progress.instance.as_str()).collect();
    assert_eq!(order, ["c", "b", "a"]);
}

#[test]
fn number_of_jobs_is_bounded_and_the_rest_counted() {
    let mut jobs = Jobs::default();
    let at = |port: usize| Address::local(u16::try_from(port + 1).unwrap());
    for port in 0..MAX_JOBS + 3 {
        jobs.take(&at(port), Ok(of(&port.to_string(), |_| ())), clock::now());
    }
    assert_eq!((jobs.iter().count(), jobs.left_out), (MAX_JOBS, 3));
    jobs.take(&at(0), gone(), clock::now());
    jobs.take(&at(MAX_JOBS), Ok(of("new", |_| ())), clock::now());
    assert_eq!(jobs.iter().count(), MAX_JOBS);
    assert!(jobs.by_key("1").is_none() && jobs.iter().any(|job| job.progress.instance == "new"));
}

#[test]
fn past_of_another_process_is_not_taken() {
    let mut jobs = taken(&[(7223, Ok(of("a", |_| ())))]);
    jobs.take_past(&Address::local(7223), &example_past("b"));
    assert!(jobs.by_key("7223").unwrap().past.points.is_empty());
    jobs.take_past(&Address::local(7223), &example_past("a"));
    assert_eq!(jobs.by_key("7223").unwrap().past.points.len(), 60);
}

/// One job: the example with a change. With it, a moment shortly after it was seen.
pub(crate) fn one(change: impl FnOnce(&mut Progress)) -> (Jobs, Instant) {
    let now = clock::now();
    let mut jobs = Jobs { turns: 1, ..Jobs::default() };
    jobs.take(&Address::local(7223), Ok(of("01J", change)), now);
    jobs.take_past(&Address::local(7223), &example_past("01J"));
    (jobs, now + Duration::from_millis(100))
}
