use super::*;
use crate::scenario::scenario;
use crate::{Done, Run, Scenario, gangs};

fn watched(scenario: &Scenario, arm: &str) -> (Done, Trace) {
    let arm = arm.parse().unwrap();
    let mut done = Run { scenario, arm: &arm, seed: 1, record: false }.watched().unwrap();
    let trace = done.trace.take().unwrap();
    (done, trace)
}

/// CPU time of a job, as seconds of all nodes.
fn cpu(trace: &Trace, job: usize) -> f64 {
    let share =
        |moment: &Moment| moment.jobs.iter().find(|held| held.job == job).map(|of| of.share);
    trace.spans().map(|(moment, end)| share(moment).unwrap_or(0.0) * (end - moment.at)).sum()
}

#[test]
fn the_shares_of_a_job_add_up_to_its_work() {
    for (name, arm) in [("FC-3", "none"), ("FC-3", "flowcon:published"), ("SP-20", "specon")] {
        let scenario = scenario(name);
        let (_, trace) = watched(&scenario, arm);
        let nodes = paceline_policy::unit::count(scenario.nodes.len());
        for (number, job) in scenario.draw(1).iter().enumerate() {
            let cpu = cpu(&trace, number) * nodes;
            assert!((cpu - job.work).abs() < 1e-6 * job.work, "{name} {arm} {}: {cpu}", job.id);
        }
    }
}

#[test]
fn watching_changes_nothing() {
    let scenario = scenario("FC-10");
    let arm = "flowcon".parse().unwrap();
    let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: false };
    let plain = run.simulate().unwrap();
    assert_eq!((plain.outcome, plain.trace), (run.watched().unwrap().outcome, None));
}

#[test]
fn two_equal_jobs_share_the_node_until_they_end_together() {
    let text = "name = \"two\"\ndescription = \"Two.\"\npolicies = [\"none\"]\n\
                [[node]]\nname = \"n\"\ncpus = 2\n[[job]]\nname = \"a\"\ncount = 2\nwork = 50.0\n";
    let (_, trace) = watched(&Scenario::parse(text).unwrap(), "none");
    let half = |job| Held { job, share: 0.5, limit: 1.0, class: "-" };
    let jobs = vec![half(0), half(1)];
    assert_eq!(trace, Trace { moments: vec![Moment { at: 0.0, jobs }], until: 100.0 });
}

#[test]
fn trace_has_the_sets_of_the_policy() {
    for (name, arm, sets) in [
        ("FC-3", "flowcon", ["CL", "NL", "WL"].as_slice()),
        ("DQ-var", "dqoes", &["-", "B", "G", "S"]),
        ("SP-20", "specon", &["CC", "PC", "WC"]),
        ("TR-5", "tradl", &["-", "AS"]),
    ] {
        let (_, trace) = watched(&scenario(name), arm);
        let all = trace.moments.iter().flat_map(|moment| &moment.jobs).map(|held| held.class);
        let seen: std::collections::BTreeSet<&str> = all.collect();
        for set in sets {
            assert!(seen.contains(set), "{name} {arm}: {seen:?} have no {set}");
        }
    }
}

#[test]
fn gangs_hold_what_their_tasks_ask_for() {
    let scenario = scenario("KO-10");
    let done = gangs::watched(&scenario, &"kod2".parse().unwrap()).unwrap();
    let trace = done.trace.unwrap();
    let held: f64 = (0..scenario.gangs.len()).map(|gang| cpu(&trace, gang)).sum();
    let used = done.outcome.utilisation.unwrap() * done.outcome.until;
    assert!((held - used).abs() < 1e-6 * used, "{held} {used}");
    let waits = |moment: &Moment| moment.jobs.iter().any(|held| held.class == "waiting");
    assert!(trace.moments.iter().any(waits));
}

#[test]
fn a_long_run_is_thinned_to_states_that_lie_evenly_apart() {
    let mut recorder = Recorder::default();
    let one = |share| vec![Held { job: 0, share, limit: 1.0, class: "-" }];
    let (mut taken, mut now) = (0_usize, 0.0);
    // Short states and longer ones, in a rhythm without a round period.
    for round in 0..100_000_u32 {
        for (seconds, share) in [(0.1, 1.0), (0.83, f64::from(round % 7) / 7.0)] {
            let to = now + seconds;
            if recorder.wants(now, to) {
                recorder.note(now, one(share));
                taken += 1;
            }
            now = to;
        }
    }
    // And then one that lasts long.
    assert!(recorder.wants(now, 2.0 * now));
    recorder.note(now, one(0.25));
    let trace = recorder.end(2.0 * now);
    assert!(
        (MAX_POINTS / 4..=MAX_POINTS).contains(&trace.moments.len()),
        "{}",
        trace.moments.len()
    );
    assert!(taken < 20 * MAX_POINTS, "{taken} states were looked at");
    let longest = trace.spans().map(|(moment, end)| end - moment.at);
    let longest = longest.take(trace.moments.len() - 1).fold(0.0, f64::max);
    assert!(longest < 0.02 * now, "{longest} s without a state");
    assert_eq!(trace.moments.last().map(|last| last.jobs.clone()), Some(one(0.25)));
}
