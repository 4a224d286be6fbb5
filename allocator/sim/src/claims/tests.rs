use super::*;
use crate::compare::{compare, every_arm};
use crate::scenario::scenario;

fn checked(name: &str) -> Vec<Checked> {
    let scenario = scenario(name);
    let all = compare(&scenario, &every_arm(&scenario), 1).unwrap();
    let own = published().unwrap().into_iter();
    let own = own.filter(|claim| claim.scenario == name && claim.applies_to(Some(20.0)));
    own.map(|claim| claim.check(&all)).collect()
}

#[test]
fn every_claim_names_a_known_scenario_and_figure() {
    for claim in published().unwrap() {
        let scenario = scenario(&claim.scenario);
        match &claim.figure {
            Figure::Value(name) | Figure::Change(name) => {
                assert!(Metric::named(name).is_some(), "{claim:?}");
            }
            Figure::Completion(job) | Figure::CompletionChange(job) => {
                let jobs = scenario.draw(1);
                assert!(jobs.iter().any(|own| own.id.as_str() == job), "{claim:?}");
            }
            Figure::Crossing => {
                let layout = scenario.layouts.iter().any(|layout| layout.name == claim.policy);
                assert!(layout || claim.policy == "dltap", "{claim:?}");
                continue;
            }
            Figure::BestJob | Figure::BestChange(_) | Figure::Improved => {}
        }
        let arms: Vec<String> = every_arm(&scenario).iter().map(ToString::to_string).collect();
        assert!(arms.contains(&claim.policy) && arms.contains(&claim.against), "{claim:?}");
    }
}

#[test]
fn only_claims_of_the_given_interval_are_taken() {
    let claims = published().unwrap();
    let of = |interval| {
        let own =
            claims.iter().filter(|claim| claim.scenario == "FC-3" && claim.applies_to(interval));
        own.map(|claim| claim.value).collect::<Vec<f64>>()
    };
    assert_eq!(of(Some(20.0)), [394.0, 84.7, 59.4, -0.214, 386.1]);
    assert_eq!(of(Some(3.75 * 8.0)), [394.0, 84.7, 57.7, -0.319, 372.4]);
    assert_eq!(of(None), [394.0, 84.7]);
}

#[test]
fn claims_about_fc_3_have_the_expected_verdicts() {
    let verdicts: Vec<(String, Figure, Verdict)> = checked("FC-3")
        .into_iter()
        .map(|checked| (checked.claim.policy, checked.claim.figure, checked.verdict))
        .collect();
    let makespan = || Figure::Value("makespan".to_owned());
    let short = || Figure::Completion("mnist-t".to_owned());
    assert_eq!(verdicts[0], ("none".to_owned(), makespan(), Verdict::Reproduced));
    assert_eq!(verdicts[1], ("none".to_owned(), short(), Verdict::Reproduced));
    assert_eq!(verdicts[2], ("flowcon".to_owned(), short(), Verdict::Reproduced));
    assert_eq!(verdicts[4], ("flowcon".to_owned(), makespan(), Verdict::Impossible));
}

#[test]
fn claim_beyond_a_bound_without_a_flaw_is_not_impossible() {
    let verdict = |flaw: Option<&str>, value, bound| {
        let claim = Claim {
            value,
            figure: Figure::Change("makespan".to_owned()),
            flaw: flaw.map(str::to_owned),
            ..published().unwrap().remove(0)
        };
        claim.judge(Some(-0.02), None, bound).verdict
    };
    assert_eq!(verdict(Some("why"), -0.1, Some(-0.05)), Verdict::Impossible);
    assert_eq!(verdict(None, -0.1, Some(-0.05)), Verdict::Different);
    assert_eq!(verdict(Some("why"), -0.1, Some(-0.099)), Verdict::Different, "rounding");
    assert_eq!(verdict(Some("why"), -0.05, None), Verdict::Reproduced);
}

#[test]
fn jobs_are_compared_one_by_one() {
    let job = |id: &str, finished| JobOutcome {
        id: id.to_owned(),
        finished: Some(finished),
        ..JobOutcome::default()
    };
    let (own, other) = ([job("a", 50.0), job("b", 30.0)], [job("a", 100.0), job("b", 20.0)]);
    let claim = published().unwrap().remove(0);
    let of = |figure| Claim { figure, ..claim.clone() }.of_jobs(&own, &other);
    assert_eq!(of(Figure::BestJob), Some(-0.5));
    assert_eq!(of(Figure::Improved), Some(0.5));
    assert_eq!(of(Figure::CompletionChange("b".to_owned())), Some(0.5));
    assert_eq!(of(Figure::BestChange(Target::Acceptable)), None);
}

#[test]
fn compact_figures_keep_distinguishing_digits() {
    for (x, text) in [(1.0004, "1"), (1.234, "1.23"), (267.93, "267.9"), (3.8, "3.80")] {
        assert_eq!(compact(x), text);
    }
}
