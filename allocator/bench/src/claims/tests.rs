use super::super::outcome::example::{Simulated, disturb};
use super::*;

#[test]
fn claims_are_compared_with_the_published_arm_in_paper_times() {
    let findings = Simulated::bench(2).analyse().findings;
    let of = |title: &str, policy: &str| {
        let mut own = findings.claims.iter().filter(|compared| compared.claim.policy == policy);
        own.find(|compared| compared.claim.figure.title() == title).unwrap()
    };
    let makespan = of("makespan", "none");
    assert_eq!(makespan.arm.as_deref(), Some("none"));
    // The works add up to the paper's total; contention and other load add a little.
    let measured = makespan.measured.unwrap().mean;
    assert!((394.0..450.0).contains(&measured), "{makespan:#?}");
    let best = of("mnist-t ends", "flowcon");
    assert_eq!(best.arm.as_deref(), Some("flowcon-published"));
    assert!(best.simulated.zip(best.measured).is_some_and(|(a, b)| (a / b.mean - 1.0).abs() < 0.1));
    assert!(findings.claims.iter().all(|compared| compared.measured.is_some()));
    // Its interval is 20 s in the paper's times; there are claims of 30 s, too.
    let intervals: Vec<f64> = findings.claims.iter().filter_map(|it| it.claim.interval).collect();
    assert_eq!(intervals, [20.0; 3]);
    let differ = findings.claims.iter().filter(|it| it.verdict != Verdict::Reproduced);
    differ.for_each(|compared| assert!(!compared.reason.is_empty(), "{compared:#?}"));
}

#[test]
fn claims_are_not_judged_by_disturbed_runs() {
    let claims_beside = |arm: &str| {
        let mut simulated = Simulated::bench(2);
        disturb(&mut simulated.runs, arm, None);
        simulated.analyse().findings.claims
    };
    let is_of_flowcon = |it: &&Compared| it.claim.policy == "flowcon";
    for arm in ["none", "flowcon-published"] {
        let claims = claims_beside(arm);
        assert!(claims.iter().any(|it| is_of_flowcon(&it)));
        for compared in claims.iter().filter(is_of_flowcon) {
            assert_eq!(compared.measured, None);
            let why = format!("every run of {arm} was disturbed");
            assert_eq!(compared.not_judged.as_deref(), Some(why.as_str()));
            assert!(compared.reason.ends_with(&format!("Not judged: {why}.")), "{compared:#?}");
        }
    }
    let of_none = claims_beside("flowcon-published");
    assert!(of_none.iter().filter(|it| !is_of_flowcon(it)).all(|it| it.not_judged.is_none()));
}

#[test]
fn claims_need_a_repeat_with_two_undisturbed_runs() {
    let mut simulated = Simulated::bench(2);
    disturb(&mut simulated.runs, "none", Some(1));
    let measured = |simulated: &Simulated| {
        let claims = simulated.analyse().findings.claims;
        claims.into_iter().find(|it| it.claim.policy == "flowcon").unwrap()
    };
    let one = measured(&simulated);
    assert_eq!((one.not_judged, one.measured.map(|it| it.half)), (None, Some(None)));
    disturb(&mut simulated.runs, "flowcon-published", Some(2));
    let why = "in each repeat the run of flowcon-published or none was disturbed";
    assert_eq!(measured(&simulated).not_judged.as_deref(), Some(why));
}

#[test]
fn schedule_without_a_paper_has_no_claims() {
    let mut simulated = Simulated::bench(1);
    simulated.about.name = "demo".to_owned();
    assert_eq!(simulated.analyse().findings.claims, []);
}

#[test]
fn every_schedule_of_a_paper_has_claims() {
    let claims = published().unwrap();
    for (schedule, scenario) in LIKE {
        assert!(claims.iter().any(|claim| claim.scenario == *scenario), "{schedule}");
    }
}

#[test]
fn reasons_distinguish_chance_from_the_models_agreement() {
    let claim = published().unwrap().into_iter().find(|claim| claim.flaw.is_none()).unwrap();
    let far = |half| Some(Interval { mean: 2.0 * claim.value, half });
    let say = |half, simulated| reason(&claim, far(half), simulated, Verdict::Different);
    assert!(say(Some(2.0 * claim.value), None).contains("within their interval"));
    assert!(say(None, None).contains("one repeat"));
    assert!(say(Some(0.0), Some(2.0 * claim.value)).contains("follows from the jobs"));
    assert!(say(Some(0.0), Some(claim.value)).contains("of the machine"));
    assert!(say(Some(0.0), Some(9.0 * claim.value)).contains("neither"));
    let same = Some(Interval { mean: claim.value, half: None });
    assert_eq!(reason(&claim, same, None, Verdict::Reproduced), "");
}
