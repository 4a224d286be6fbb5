use super::*;
use crate::scenario::scenario;

#[test]
fn the_three_placements_of_dl_3_cross_in_six_four_and_two_pairs() {
    let scenario = scenario("DL-3");
    let all = exchanges(&scenario, &scenario.arms).unwrap();
    let crossing: Vec<(&str, u32, u32)> = all
        .iter()
        .map(|exchange| (exchange.placement.as_str(), exchange.pairs, exchange.crossing))
        .collect();
    assert_eq!(crossing, [("default", 6, 6), ("ideal", 6, 4), ("dltap", 6, 2)]);
    // Two ways, four bytes, half of three million parameters, and two pairs.
    assert!((all[2].step_bytes - 24e6).abs() < 1.0, "{all:?}");
    assert!((all[2].bytes - 24e10).abs() < 1e4, "{all:?}");
}

#[test]
fn gangs_finish_under_policies_that_start_them_whole() {
    let scenario = scenario("KO-10");
    for name in ["fifo-gang", "kod2"] {
        let done = simulate(&scenario, &name.parse().unwrap(), false).unwrap();
        for job in &done.outcome.jobs {
            assert!(
                job.completion().unwrap() >= job.alone.unwrap() * (1.0 - 1e-9),
                "{name}: {job:?}"
            );
        }
        assert!(
            done.outcome.utilisation.unwrap() > 0.0 && done.outcome.utilisation.unwrap() <= 1.0
        );
    }
}

#[test]
fn no_policy_puts_more_on_a_node_than_it_has() {
    let scenario = scenario("KO-10");
    for name in ["fifo", "fifo-gang", "kod2"] {
        let done = simulate(&scenario, &name.parse().unwrap(), true).unwrap();
        for line in &done.lines {
            let frame = GangFrame::parse(&line.frame).unwrap();
            for node in &frame.nodes {
                let cpu = |gang: &gangs::Gang| {
                    let on = |tasks: &BTreeMap<String, u32>| {
                        f64::from(tasks.get(node.name.as_str()).copied().unwrap_or(0))
                    };
                    on(&gang.placement.ps) * gang.ps.cpu.unwrap()
                        + on(&gang.placement.workers) * gang.worker.cpu.unwrap()
                };
                let held: f64 = frame.jobs.iter().map(cpu).sum();
                assert!(held <= node.cpus.unwrap() + 1e-9, "{name}: {}", line.frame);
            }
        }
    }
}

#[test]
fn recorded_frames_replay_to_the_same_decisions() {
    use paceline_policy::replay::Replay;
    let scenario = scenario("KO-10");
    let arm: Arm = "kod2".parse().unwrap();
    let done = simulate(&scenario, &arm, true).unwrap();
    let mut replay = Replay::new(scenario.policy(&arm).unwrap());
    for line in &done.lines {
        let answer = replay.line(&line.frame).unwrap().unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap(), line.decision);
    }
}

#[test]
fn gang_below_clock_resolution_is_done_at_once() {
    let text = "name = \"late\"\ndescription = \"Late.\"\npolicies = [\"fifo-gang\"]\nuntil = 1e9\n\
                [[node]]\nname = \"n\"\ncpus = 2\n[[gang]]\nname = \"g\"\narrive = { at = 9e8 }\n\
                work = 1e-8\nservers = { count = 1, cpu = 1 }\nworkers = { min = 1, cpu = 1 }";
    let late = Scenario::parse(text).unwrap();
    let done = simulate(&late, &"fifo-gang".parse().unwrap(), false).unwrap();
    assert_eq!(done.outcome.jobs[0].finished, Some(9e8));
}

#[test]
fn workers_taken_for_another_gang_are_counted() {
    let text = "name = \"two\"\ndescription = \"Two.\"\npolicies = [\"kod2\"]\nuntil = 1e4\n\
                [[node]]\nname = \"n\"\ncpus = 4\n\
                [[gang]]\nname = \"small\"\nwork = 1000\n\
                servers = { count = 1, cpu = 0 }\nworkers = { min = 1, max = 4, cpu = 1 }\n\
                [[gang]]\nname = \"large\"\nwork = 100\narrive = { at = 100 }\n\
                servers = { count = 1, cpu = 0 }\nworkers = { min = 2, cpu = 1 }";
    let two = Scenario::parse(text).unwrap();
    let preemptions = |arm: &str| {
        let done = simulate(&two, &arm.parse().unwrap(), false).unwrap();
        done.outcome.jobs.iter().map(|job| job.preemptions).collect::<Vec<_>>()
    };
    // The small gang has all cores by then, and keeps two; under fifo-gang it never has more than
    // one.
    assert_eq!((preemptions("kod2"), preemptions("fifo-gang")), (vec![2, 0], vec![0, 0]));
}
