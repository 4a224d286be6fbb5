use super::*;
use crate::scenario::LIBRARY;

fn scenario(name: &str) -> Scenario {
    let listed = LIBRARY.iter().find(|listed| listed.name == name).unwrap();
    Scenario::parse(listed.text).unwrap()
}

fn run(scenario: &Scenario, arm: &str, seed: u64, record: bool) -> Done {
    let arm = arm.parse().unwrap();
    Run { scenario, arm: &arm, seed, record }.simulate().unwrap()
}

fn completions(done: &Done) -> Vec<f64> {
    done.outcome.jobs.iter().map(|job| job.completion().unwrap()).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / paceline_policy::unit::count(numbers.len())
}

#[test]
fn without_a_policy_fc_3_has_the_papers_figures() {
    let done = run(&scenario("FC-3"), "none", 1, false);
    let completions = completions(&done);
    assert!((done.outcome.until - 394.0).abs() < 1.0, "makespan {}", done.outcome.until);
    assert!((completions[2] - 84.7).abs() < 1.0, "{completions:?}");
    assert!((mean(&completions) - 268.1).abs() < 0.5, "{completions:?}");
    assert!((done.outcome.utilisation - 1.0).abs() < 1e-9, "{}", done.outcome.utilisation);
}

#[test]
fn flowcon_as_published_helps_the_short_job_of_fc_3_as_the_paper_says() {
    let done = run(&scenario("FC-3"), "flowcon:published", 1, false);
    let completions = completions(&done);
    assert!((57.0..83.0).contains(&completions[2]), "{completions:?}");
}

#[test]
fn the_default_scheduler_has_the_papers_mean_in_sp_fix() {
    let completions = completions(&run(&scenario("SP-fix"), "spread", 1, false));
    assert!((mean(&completions) - 275.0).abs() < 3.0, "{completions:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_does_not() {
    for (name, arm) in [("STRESS", "flowcon"), ("SP-20", "specon"), ("DQ-rnd", "dqoes")] {
        let mut scenario = scenario(name);
        scenario.until = scenario.until.min(600.0);
        let bytes = |seed| {
            let Done { outcome, lines } = run(&scenario, arm, seed, true);
            (serde_json::to_string(&outcome).unwrap(), lines)
        };
        assert_eq!(bytes(1), bytes(1), "{name}");
        assert_ne!(bytes(1).0, bytes(2).0, "{name}");
    }
}

#[test]
fn what_is_recorded_replays_to_the_same_decisions() {
    use paceline_policy::replay::Replay;
    for (name, arm) in [("FC-3", "flowcon"), ("TR-5", "tradl"), ("SP-20", "specon")] {
        let scenario = scenario(name);
        let done = run(&scenario, arm, 2, true);
        assert!(!done.lines.is_empty());
        let mut replay = Replay::new(scenario.policy(&arm.parse().unwrap()).unwrap());
        for line in &done.lines {
            let answer = replay.line(&line.frame).unwrap().unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), line.decision, "{name}");
        }
    }
}

#[test]
fn no_policy_makes_or_loses_work() {
    for (name, arms) in [
        ("FC-5", ["none", "flowcon", "flowcon:published"]),
        ("SP-20", ["spread", "specon", "specon:published"]),
    ] {
        let scenario = scenario(name);
        let nodes = paceline_policy::unit::count(scenario.nodes.len());
        let work: f64 = scenario.draw(1).iter().map(|job| job.work).sum();
        for arm in arms {
            let done = run(&scenario, arm, 1, false);
            let used = done.outcome.utilisation * done.outcome.until * nodes;
            assert!((used - work).abs() < 1e-6 * work, "{name} {arm}: {used} {work}");
        }
    }
}

#[test]
fn jobs_that_reach_their_objective_under_tradl_are_ended_there() {
    let done = run(&scenario("TR-5"), "tradl", 1, false);
    let ended = done.outcome.jobs.iter().filter(|job| job.ended);
    let mut number = 0;
    for job in ended {
        number += 1;
        let (objective, end) = (job.objective.unwrap(), job.finished.unwrap());
        assert!(job.acceptable.unwrap() <= objective && objective <= end, "{job:?}");
    }
    assert!(number >= 3, "{:?}", done.outcome.jobs);
}

#[test]
fn a_move_costs_its_checkpoint_and_is_made_at_most_twice() {
    let done = run(&scenario("SP-20"), "specon", 1, false);
    let moves: u64 = done.outcome.jobs.iter().map(|job| job.moves).sum();
    assert!(moves > 0);
    // Once for convergence and once for balance.
    assert!(done.outcome.jobs.iter().all(|job| job.moves <= 2));
}

#[test]
fn a_run_that_never_ends_by_itself_ends_where_the_scenario_says() {
    let done = run(&scenario("DQ-20"), "none", 1, false);
    assert_eq!(Some(done.outcome.until), Some(1500.0));
    for job in &done.outcome.jobs {
        assert!((job.batch_latency.unwrap() - 3.16).abs() < 1e-6, "{job:?}");
    }
}
