use super::*;
use crate::compare::compare;
use crate::metrics::METRICS;
use crate::scenario::scenario;

fn axis(text: &str) -> Axis {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<Axis>().unwrap_err().to_string()
}

#[test]
fn values_are_numbers_and_ranges_with_both_ends() {
    for (values, all) in [
        ("0.05", [0.05].as_slice()),
        ("0.01,0.03, 0.15", &[0.01, 0.03, 0.15]),
        ("20..60/10", &[20.0, 30.0, 40.0, 50.0, 60.0]),
        ("20..25/10", &[20.0]),
        ("0.1..0.3/0.1", &[0.1, 0.2, 0.3]),
        ("5, 20..40/20", &[5.0, 20.0, 40.0]),
    ] {
        let axis = axis(&format!("flowcon.interval={values}"));
        assert_eq!((axis.name().as_str(), axis.values.as_slice()), ("flowcon.interval", all));
    }
}

#[test]
fn invalid_axis_is_rejected_with_a_hint() {
    for text in
        ["flowcon.alpha", "alpha=1", "flowcon.alpha=", "flowcon.alpha=a", "flowcon.alpha=1,"]
    {
        let said = refusal(text);
        assert!(said.starts_with(&format!("invalid --sweep {text:?}: expected ")), "{said}");
        assert!(said.ends_with(", for example flowcon.interval=5,20..60/10"), "{said}");
    }
    for (range, reason) in [
        ("1..0/1", "expected a TO of at least FROM"),
        ("0..1/0", "expected a STEP above 0"),
        ("0..1", "expected numbers, or ranges FROM..TO/STEP"),
    ] {
        let said = refusal(&format!("flowcon.interval={range}"));
        assert!(said.contains(reason), "{said}");
    }
    for range in ["60..20/10", "20..60/0", "20..60", "20..60/-1", "nan", "inf"] {
        assert!(refusal(&format!("flowcon.interval={range}")).contains(range), "{range}");
    }
    assert!(refusal("flocon.alpha=1").contains("did you mean \"flowcon\"?"));
    assert!(refusal("flowcon.alhpa=1").contains("did you mean \"alpha\"?"));
    assert!(
        refusal("flowcon.beta=2,0")
            .contains("invalid parameter beta \"0\" of flowcon: expected a number above 0")
    );
    assert!(refusal("flowcon.interval=1..1000/1").contains("at most 100"));
}

#[test]
fn one_or_two_parameters_of_one_policy_are_varied_at_once() {
    let of = |texts: &[&str]| Sweep::new(texts.iter().map(|text| axis(text)).collect());
    assert!(of(&[]).is_err());
    assert!(of(&["flowcon.alpha=1", "tradl.interval=1"]).is_err());
    assert!(of(&["flowcon.alpha=1", "flowcon.alpha=2"]).is_err());
    assert!(of(&["flowcon.alpha=1", "flowcon.beta=1", "flowcon.interval=2"]).is_err());
    let sweep = of(&["flowcon.alpha=0.1,0.2", "flowcon.interval=20,30,40"]).unwrap();
    let points = sweep.points();
    assert_eq!(points.len(), 6);
    assert_eq!((&points[0], &points[1]), (&vec![0.1, 20.0], &vec![0.1, 30.0]));
    assert_eq!(points[5], [0.2, 40.0]);
}

#[test]
fn a_point_is_a_run_with_those_parameters() {
    let scenario = scenario("FC-3");
    let sweep = Sweep::new(vec![axis("flowcon.interval=20..60/40")]).unwrap();
    let arm = "flowcon:published".parse().unwrap();
    let completion: Measure = "completion:mnist-t".parse().unwrap();
    let at = |seconds: f64| {
        let there = sweep.at(&scenario, &[seconds]);
        measure(&there, &arm, &completion, 1).unwrap().unwrap().interval.mean
    };
    // FlowCon's paper has 57.7 to 82.1 s, and 84.7 s without a policy.
    assert!((57.0..62.0).contains(&at(20.0)), "{}", at(20.0));
    assert!((80.0..84.7).contains(&at(60.0)), "{}", at(60.0));
    assert_eq!(scenario, self::scenario("FC-3"), "it is left as it was");
}

#[test]
fn measure_equals_the_metric_of_a_comparison() {
    let scenario = scenario("FC-5");
    let arm: Arm = "none".parse().unwrap();
    let compared = compare(&scenario, std::slice::from_ref(&arm), 3).unwrap();
    for metric in METRICS {
        let what: Measure = metric.name.parse().unwrap();
        let measured = measure(&scenario, &arm, &what, 3).unwrap();
        let interval = measured.map(|measured| measured.interval);
        assert_eq!(interval, compared.results[0].mean(metric), "{what}");
    }
    let error = "completion_men".parse::<Measure>().unwrap_err().to_string();
    assert!(error.contains("did you mean \"completion_mean\"?"), "{error}");
}

#[test]
fn figure_of_a_run_that_is_cut_short_leaves_out_jobs() {
    let mut scenario = scenario("FC-3");
    let arm: Arm = "none".parse().unwrap();
    let leaves_out = |scenario: &Scenario, what: &str| {
        let measured = measure(scenario, &arm, &what.parse().unwrap(), 1).unwrap();
        measured.unwrap().leaves_out_jobs
    };
    assert!(!leaves_out(&scenario, "completion_mean"));
    // The first of its jobs ends at 165 s, the last at 394 s.
    scenario.until = 300.0;
    assert!(leaves_out(&scenario, "completion_mean"));
    assert!(!leaves_out(&scenario, "completion:mnist-t") && !leaves_out(&scenario, "loss_area"));
}
