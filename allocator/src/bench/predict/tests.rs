use super::super::outcome::example::Simulated;
use super::super::outcome::{ArmFindings, Findings};

fn arm<'a>(findings: &'a Findings, name: &str) -> &'a ArmFindings {
    findings.arms.iter().find(|arm| arm.facts.name == name).unwrap()
}

#[test]
fn what_was_fitted_to_none_says_what_comes_of_another_policy() {
    let judged = Simulated::bench(3).judge();
    let findings = &judged.findings;
    assert_eq!(findings.prediction.why_not, None);
    let flowcon = arm(findings, "flowcon-published");
    for figure in ["completion_mean", "acceptable_mean"] {
        let found = flowcon.fidelity.iter().find(|found| found.figure == figure).unwrap();
        assert!(found.holds && found.jobs_hold == Some(true), "{found:#?}");
        assert_eq!(found.jobs.len(), 3);
    }
    let none = arm(findings, "none").figure("completion_mean").unwrap();
    let own = flowcon.figure("completion_mean").unwrap();
    assert!(
        own.difference.is_some_and(|it| it.mean < -1.0),
        "the policy differs: {own:?} {none:?}"
    );
    assert!(own.over_bound.is_some_and(|over| over > 1.0), "{own:?}");
    let contention = findings.prediction.contention.unwrap();
    assert!((contention - 0.03).abs() < 0.01, "{contention}");
    assert!(judged.scenario.is_some_and(|text| text.contains("mnist-p")));
}

#[test]
fn a_prediction_that_is_off_does_not_hold() {
    let mut simulated = Simulated::bench(3);
    let slower = simulated.runs.iter_mut().filter(|run| run.run.arm != "none");
    slower
        .flat_map(|run| &mut run.run.jobs)
        .for_each(|job| job.ended += 0.3 * (job.ended - job.arrived));
    let findings = simulated.judge().findings;
    let flowcon = arm(&findings, "flowcon-published");
    let found = flowcon.fidelity.iter().find(|found| found.figure == "completion_mean").unwrap();
    assert!(!found.holds && found.jobs_hold == Some(false), "{found:#?}");
    assert!((-0.28..-0.18).contains(&found.error), "{found:#?}");
}

#[test]
fn without_frames_there_is_no_prediction_and_the_reason_is_told() {
    let simulated = Simulated::bench(1);
    let mut observed = simulated.observed();
    for run in &mut observed {
        run.frames = Err("runs/001-none/frames.jsonl cannot be read".to_owned());
    }
    let about = simulated.about.clone();
    let judged = super::super::outcome::judge(about, &simulated.arms, &observed, &[]);
    let why = judged.findings.prediction.why_not.unwrap();
    assert!(why.contains("frames.jsonl"), "{why}");
    assert_eq!(judged.scenario, None);
    assert!(judged.findings.arms.iter().all(|arm| arm.fidelity.is_empty()));
}
