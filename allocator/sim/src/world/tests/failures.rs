//! Nodes that fail and jobs that crash.

use paceline_policy::Frame;
use proptest::prelude::*;

use super::*;
use crate::world::live::LiveJob;

/// Jobs on nodes of two CPUs, without a limit.
fn parse(nodes: &str, jobs: &str) -> Scenario {
    let text = format!(
        "name = \"fails\"\ndescription = \"Jobs that fail.\"\npolicies = [\"none\"]\nuntil = 1e6\n\
         [[node]]\nname = \"n\"\ncpus = 2\n{nodes}\n[[job]]\nname = \"a\"\nwork = 100\n{jobs}"
    );
    Scenario::parse(&text).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + a.abs())
}

#[test]
fn a_job_that_crashes_goes_on_from_its_last_checkpoint() {
    // After 50 s it has done 50 and keeps 30; it resumes at 57 s. At 80 s it has done 53, and keeps
    // 30 again; the remaining 70 begin at 87 s.
    let jobs = "checkpoint = { every = 30, mean = 5 }\nfailures = { at = [50, 80], down = 2 }";
    let done = run(&parse("", jobs), "none", 1, false);
    let [job] = done.outcome.jobs.as_slice() else { panic!() };
    assert!(close(job.finished.unwrap(), 157.0), "{job:?}");
    assert_eq!((job.failures, job.started), (2, Some(0.0)));
    assert!(close(job.lost_work.unwrap(), 20.0 + 23.0), "{job:?}");
}

#[test]
fn without_checkpoints_a_job_begins_from_the_start() {
    let done = run(&parse("", "failures = { at = [60] }"), "none", 1, false);
    let [job] = done.outcome.jobs.as_slice() else { panic!() };
    assert!(close(job.finished.unwrap(), 160.0) && close(job.lost_work.unwrap(), 60.0), "{job:?}");
}

#[test]
fn where_nothing_can_fail_no_work_is_lost_or_counted() {
    let done = run(&parse("", ""), "none", 1, false);
    assert_eq!((done.outcome.jobs[0].lost_work, done.outcome.jobs[0].failures), (None, 0));
}

#[test]
fn only_unbound_jobs_change_nodes_when_their_own_fails() {
    let nodes = "failures = { at = [40], down = 60 }\n[[node]]\nname = \"other\"\ncpus = 2";
    let free = "checkpoint = { every = 30, mean = 5 }";
    let done = run(&parse(nodes, free), "none", 1, false);
    // The remaining 70 begin at 45 s.
    assert!(close(done.outcome.jobs[0].finished.unwrap(), 115.0), "{:?}", done.outcome.jobs);
    // Two nodes for 115 s, less the 60 s in which one was down.
    assert!(
        close(done.outcome.utilisation.unwrap(), 110.0 / 170.0),
        "{}",
        done.outcome.utilisation.unwrap()
    );
    let bound = format!("{free}\nnode = \"n\"");
    let done = run(&parse(nodes, &bound), "none", 1, false);
    assert!(close(done.outcome.jobs[0].finished.unwrap(), 175.0), "{:?}", done.outcome.jobs);
}

#[test]
fn jobs_without_a_working_node_wait() {
    let nodes = "failures = { at = [2, 10], down = 20 }";
    let done = run(&parse(nodes, "arrive = { at = 5 }"), "none", 1, false);
    let job = &done.outcome.jobs[0];
    // At 10 s the node is down already, and does not fail again.
    assert_eq!((job.started, job.failures), (Some(22.0), 0), "{job:?}");
    assert!(close(job.finished.unwrap(), 122.0), "{job:?}");
}

#[test]
fn loss_of_a_stopped_job_counts_until_the_end() {
    let loss = "loss = { curve = \"exponential\", start = 2, end = 1, tau = 0.2 }";
    let mut scenario = parse("failures = { at = [5], down = 1000 }", loss);
    scenario.until = 50.0;
    let area = run(&scenario, "none", 1, false).outcome.jobs[0].loss_area;
    let curve = scenario.draw(1)[0].loss.clone().unwrap();
    // Its work is lost, so all of the fall remains.
    assert!(close(area, 5.0 * curve.to_come(0.0, 0.05) + 45.0), "{area}");
}

#[test]
fn frames_omit_a_job_while_it_is_down() {
    let jobs = "checkpoint = { mean = 5 }\nfailures = { at = [50], down = 20 }";
    let done = run(&parse("", jobs), "none", 1, true);
    let frames = done.lines.iter().map(|line| Frame::parse(&line.frame).unwrap());
    let seen: Vec<(f64, usize)> = frames.map(|frame| (frame.t, frame.jobs.len())).collect();
    for (at, jobs) in &seen {
        assert_eq!(*jobs, usize::from(!(50.0..75.0).contains(at) && *at < 175.0), "{seen:?}");
    }
    assert!(seen.iter().any(|(at, _)| (50.0..50.1).contains(at)), "{seen:?}");
}

#[test]
fn a_move_saves_what_was_done() {
    let scenario = parse("", "");
    let mut live = LiveJob::new(scenario.draw(1).remove(0), 0, 1);
    live.before = 40.0;
    live.save_checkpoint();
    live.before = 70.0;
    live.roll_back(1.0);
    assert!(close(live.before, 40.0) && close(live.outcome.lost_work.unwrap(), 30.0));
}

#[test]
fn work_and_lost_work_are_what_the_cpu_was_used_for() {
    let scenario = scenario("FAIL-20");
    let work: f64 = scenario.draw(1).iter().map(|job| job.work).sum();
    for arm in ["none", "spread", "specon", "flowcon"] {
        let arm = arm.parse().unwrap();
        let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
        let mut world = World::new(&run, scenario.draw(1)).unwrap();
        while world.step().unwrap() {}
        let used: f64 = world.nodes.iter().map(|state| state.fluid.used()).sum();
        let jobs = world.finish().outcome.jobs;
        let lost: f64 = jobs.iter().map(|job| job.lost_work.unwrap()).sum();
        assert!(lost > 0.0 && jobs.iter().all(|job| job.finished.is_some()), "{arm}");
        assert!(close(used, work + lost), "{arm}: {used} {work} {lost}");
    }
}

/// When a job that is alone on its node ends, and what it loses; `None` if it fails at the moment
/// of its end.
fn expected(every: Option<f64>, restore: f64, down: f64, failures: &[f64]) -> Option<(f64, f64)> {
    let (mut at, mut kept, mut lost) = (0.0, 0.0, 0.0);
    for failure in failures {
        if *failure <= at {
            // It was stopped.
            continue;
        }
        let done = kept + failure - at;
        if close(done, 100.0) {
            return None;
        }
        if done > 100.0 {
            break;
        }
        let saved = every.map_or(0.0, |every| (done / every + 1e-9).floor() * every);
        lost += done - saved;
        (at, kept) = (failure + down + restore, saved);
    }
    Some((at + 100.0 - kept, lost))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_job_alone_does_exactly_its_work_and_what_it_lost(
        every in prop::option::of(5_u32..60),
        restore in 0_u32..9,
        down in 0_u32..9,
        mut failures in prop::collection::vec(1_u32..300, 1..8),
    ) {
        failures.sort_unstable();
        let every_field = every.map(|every| format!("every = {every}, ")).unwrap_or_default();
        let jobs = format!(
            "checkpoint = {{ {every_field}mean = {restore} }}\n\
             failures = {{ at = {failures:?}, down = {down} }}"
        );
        let done = run(&parse("", &jobs), "none", 1, false);
        let moments: Vec<f64> = failures.iter().map(|at| f64::from(*at)).collect();
        let expected =
            expected(every.map(f64::from), f64::from(restore), f64::from(down), &moments);
        prop_assume!(expected.is_some());
        let (end, lost) = expected.unwrap();
        let job = &done.outcome.jobs[0];
        prop_assert!(close(job.finished.unwrap(), end), "{job:?} {end}");
        prop_assert!(close(job.lost_work.unwrap(), lost), "{job:?} {lost}");
    }
}
