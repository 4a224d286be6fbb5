use super::*;

fn run() -> Outcome {
    let job = |id: &str, arrived, finished, alone| JobOutcome {
        id: id.to_owned(),
        arrived,
        finished: Some(finished),
        alone: Some(alone),
        batch_latency: Some(finished / 10.0),
        ..JobOutcome::default()
    };
    let mut jobs = vec![job("a", 0.0, 40.0, 20.0), job("b", 10.0, 30.0, 20.0)];
    jobs[0].targets.batch_latency = Some(4.2);
    jobs[1].targets.batch_latency = Some(6.0);
    jobs[0].acceptable = Some(12.0);
    Outcome { jobs, utilisation: Some(0.5), ..Outcome::default() }
}

fn figure(name: &str) -> Option<f64> {
    Metric::named(name).unwrap().of(&run())
}

#[test]
fn metrics_have_the_expected_values() {
    for (name, value) in [
        ("completion_mean", 30.0),
        ("completion_median", 30.0),
        ("completion_p99", 39.8),
        ("makespan", 40.0),
        ("slowdown_mean", 1.5),
        ("jain", 2.25 / 2.5),
        ("acceptable_mean", 12.0),
        ("satisfied", 1.0),
        ("met", 2.0),
        ("distance", 3.0),
        ("utilisation", 50.0),
        ("moves", 0.0),
        ("unfinished", 0.0),
    ] {
        let got = figure(name).unwrap();
        assert!((got - value).abs() < 1e-9, "{name}: {got}");
    }
    assert_eq!((figure("objective_mean"), figure("loss_area")), (None, None));
}

#[test]
fn jobs_that_never_end_are_not_left_out() {
    let completion = Metric::named("completion_mean").unwrap();
    let mut run = run();
    run.jobs[1].finished = None;
    assert!(completion.leaves_out_jobs(&run));
    assert!(!Metric::named("loss_area").unwrap().leaves_out_jobs(&run));
    run.jobs[1].alone = None;
    assert!(!completion.leaves_out_jobs(&run));
}
