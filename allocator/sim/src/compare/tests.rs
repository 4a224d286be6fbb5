use super::*;
use proptest::prelude::*;

use crate::metrics::Better;
use crate::scenario::scenario;

#[test]
fn comparison_uses_the_same_seeds_and_bounds() {
    let scenario = scenario("FC-5");
    let arms: Vec<Arm> = ["none", "flowcon"].map(|name| name.parse().unwrap()).to_vec();
    let comparison = compare(&scenario, &arms, 3).unwrap();
    assert_eq!(comparison.seeds, [1, 2, 3]);
    let completion = &METRICS[0];
    let [none, flowcon] = comparison.results.as_slice() else { panic!() };
    let difference = comparison.difference(flowcon, completion).unwrap();
    let means = [none, flowcon].map(|results| results.mean(completion).unwrap().mean);
    assert!((difference.mean - (means[1] - means[0])).abs() < 1e-9);
    assert!(comparison.difference(none, completion).unwrap().mean.abs() <= 0.0);
    for results in [none, flowcon] {
        for metric in [completion, Metric::named("makespan").unwrap()] {
            assert!(comparison.ratio(results, metric).unwrap() >= 1.0 - 1e-9, "{metric:?}");
        }
    }
    assert!(comparison.gap_closed(none, completion).unwrap().abs() <= 0.0);
    let closed = comparison.gap_closed(flowcon, completion).unwrap();
    let bound = comparison.bound(completion).unwrap().mean;
    assert!((means[0] - closed * (means[0] - bound) - means[1]).abs() < 1e-9);
    assert!(comparison.metrics().iter().any(|metric| metric.name == "loss_area"));
    assert!(!comparison.metrics().iter().any(|metric| metric.name == "met"));
}

#[test]
fn gang_policies_keep_bounds_and_cut_runs_have_no_ratio() {
    let mut scenario = scenario("KO-10");
    let arms = every_arm(&scenario);
    let names: Vec<String> = arms.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["kod2:published", "kod2", "fifo", "fifo-gang"]);
    let completion = Metric::named("completion_mean").unwrap();
    let all = compare(&scenario, &arms, 1).unwrap();
    for metric in [completion, Metric::named("makespan").unwrap()] {
        for results in &all.results {
            assert!(all.ratio(results, metric).unwrap() >= 1.0, "{} {metric:?}", results.arm);
        }
    }
    scenario.until = 400.0;
    let all = compare(&scenario, &arms, 1).unwrap();
    assert!(all.results.iter().all(|results| all.ratio(results, completion).is_none()));
}

/// Work, arrival, quarters of a node that it can use, steepness, whether it has targets, and
/// whether its reports are noisy.
type Arrival = (u32, u32, u32, u32, bool, bool);

/// A workload on one node or two, of jobs that learn, or of endless jobs with batch targets.
fn workload() -> impl Strategy<Value = String> {
    let noisy = prop::bool::weighted(0.3);
    let job = (1..60_u32, 0..40_u32, 1..=4_u32, 1..9_u32, prop::bool::ANY, noisy);
    let jobs = prop::collection::vec(job, 1..6);
    (jobs, 1..3_u32, prop::bool::ANY, 0..2_u32).prop_map(|(jobs, nodes, endless, others)| {
        let background = f64::from(others) / 4.0;
        let head = format!(
            "name = \"random\"\ndescription = \"-\"\npolicies = [\"none\"]\nuntil = 5000.0\n\
             [limiter]\nenforcement = \"quota\"\n\
             [params.flowcon]\ninterval = 5\n[params.tradl]\ninterval = 2\n\
             [params.dqoes]\ninterval = 10\n[params.specon]\ninterval = 5\nalpha = 0.05\n\
             [[node]]\nname = \"n\"\ncount = {nodes}\ncpus = 4\n\
             background = {background}\n"
        );
        let job = |(number, (work, arrive, quarters, steep, targets, noisy)): (u32, Arrival)| {
            let (tau, parallel) = (f64::from(steep) / 20.0, f64::from(quarters) / 4.0);
            let kind = if endless {
                let batch = f64::from(steep) / 10.0;
                format!("batch = {{ work = {batch}, fixed = 0.1 }}\nbatch_latency = {work}\n")
            } else {
                format!(
                    "work = {work}\nloss = {{ curve = \"exponential\", start = 2.0, end = 0.5, \
                     tau = {tau} }}\n"
                )
            };
            let targets =
                if targets && !endless { "acceptable = 1.2\nobjective = 0.9\n" } else { "" };
            let noise = if noisy && !endless { "noise = 0.5\n" } else { "" };
            format!(
                "[[job]]\nname = \"j{number}\"\narrive = {{ at = {arrive} }}\n\
                 parallel = {parallel}\n{kind}{targets}{noise}"
            )
        };
        std::iter::once(head).chain((0..).zip(jobs).map(job)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_policy_beats_a_bound_whatever_the_jobs(text in workload()) {
        let scenario = Scenario::parse(&text).unwrap();
        let mut names = vec!["none", "flowcon", "flowcon:published", "tradl", "tradl:published"];
        names.extend(["dqoes", "dqoes:published", "spread", "specon", "specon:published"]);
        let arms: Vec<Arm> = names.iter().map(|name| name.parse().unwrap()).collect();
        let all = compare(&scenario, &arms, 1).unwrap();
        let mut compared = 0;
        for results in &all.results {
            for metric in METRICS {
                let Some(ratio) = all.ratio(results, metric) else { continue };
                compared += 1;
                let beaten = match metric.better {
                    Better::Less => ratio < 1.0 - 1e-3,
                    Better::More => ratio > 1.0 + 1e-9,
                };
                prop_assert!(!beaten, "{} {}: {ratio}\n{text}", results.arm, metric.name);
            }
        }
        let unknown = text.contains("noise") && text.contains("objective");
        prop_assert!(compared > 0 || unknown, "{text}");
        for metric in METRICS {
            // Its two ends are in order.
            if let Some((limit, reached)) = all.bound(metric).zip(all.reached(metric)) {
                let apart = reached.mean - limit.mean;
                prop_assert!(apart >= -1e-6 * limit.mean, "{}: {limit:?} {reached:?}", metric.name);
            }
        }
    }
}

#[test]
fn paceline_delays_no_job_much_beyond_equal_sharing() {
    let arm = Arm { policy: "paceline".to_owned(), variant: Variant::Resolved };
    let worst = Metric::named("fairness_worst").unwrap();
    for (name, most) in [("FC-3", 1.02), ("FC-5", 1.02), ("LONG", 1.02), ("PA-50", 1.05)] {
        let results = runs(&scenario(name), &arm, &[1, 2, 3]).unwrap();
        for outcome in &results.outcomes {
            let found = worst.of(outcome).unwrap();
            assert!(found <= most, "{name}: {found}");
        }
    }
}

#[test]
fn comparison_with_too_many_results_is_refused() {
    let scenario = scenario("FC-3");
    let error = compare(&scenario, &scenario.arms, 1_000_000).unwrap_err().to_string();
    assert!(error.contains("over 1000000 seeds of 3 jobs: expected at most 2000000"), "{error}");
}

#[test]
fn each_run_of_a_comparison_is_noted() {
    let scenario = scenario("FC-3");
    let mut noted = Vec::new();
    compare_noting(&scenario, &scenario.arms[..1], 2, |done, all| noted.push((done, all))).unwrap();
    assert_eq!(noted, [(1, 2), (2, 2)]);
}

#[test]
fn difference_from_a_run_cut_short_leaves_out_jobs() {
    let mut scenario = scenario("FC-3");
    let arms: Vec<Arm> = ["none", "flowcon"].map(|name| name.parse().unwrap()).to_vec();
    let leaves_out = |scenario: &Scenario, metric: &str| {
        let all = compare(scenario, &arms, 1).unwrap();
        let (metric, own) = (Metric::named(metric).unwrap(), &all.results[1]);
        (own.leaves_out_jobs(metric), all.difference_leaves_out_jobs(own, metric))
    };
    assert_eq!(leaves_out(&scenario, "makespan"), (false, false));
    scenario.until = 300.0;
    assert_eq!(leaves_out(&scenario, "makespan"), (true, true));
    assert_eq!(leaves_out(&scenario, "loss_area"), (false, false));
}
