use super::super::analysis::analyse;
use super::super::outcome::Observed;
use super::super::outcome::example::{BEGAN, Simulated, bare, disturb, entries, example};
use super::longest_move;

#[test]
fn worse_arm_is_explained_by_a_cut_of_the_job_that_lost_most() {
    let mut simulated = Simulated::bench(2);
    let worse = simulated.runs.iter_mut().filter(|run| run.run.arm != "none");
    worse.for_each(|run| run.run.jobs[0].ended += 60.0);
    let findings = simulated.analyse().findings;
    let regression = findings.arms[1].regression.as_ref().expect("it is worse");
    assert!(
        regression.symptom.starts_with("flowcon-published: mean completion is "),
        "{regression:#?}"
    );
    let text = regression.sentences.join("\n");
    assert!(text.contains("The job that lost most is vae"), "{text}");
    assert!(text.contains(": vae is given ") && text.contains("vae was limited from"), "{text}");
    assert!(text.contains("That decision was in force for "), "{text}");
    assert_eq!(findings.arms[0].regression, None, "`none` decides nothing");
}

#[test]
fn disturbed_runs_are_not_explained() {
    for arm in ["none", "flowcon-published"] {
        let mut simulated = Simulated::bench(2);
        let worse = simulated.runs.iter_mut().filter(|run| run.run.arm != "none");
        worse.for_each(|run| run.run.jobs[0].ended += 60.0);
        disturb(&mut simulated.runs, arm, None);
        assert_eq!(simulated.analyse().findings.arms[1].regression, None, "{arm}");
    }
}

#[test]
fn better_arm_is_not_explained() {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    let better = runs.iter_mut().filter(|run| run.run.arm != "none");
    better.for_each(|run| run.run.jobs[0].ended = 20.0);
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    assert_eq!(analyse(about, &facts, &observed, &[]).findings.arms[1].regression, None);
}

#[test]
fn endless_jobs_are_explained_by_their_batch_latency() {
    let mut simulated = Simulated::inference(2);
    // The paper of that schedule prints more satisfied jobs than this run has.
    simulated.about.name = "R-DQ10".to_owned();
    let findings = simulated.analyse().findings;
    let regression = findings.arms[1].regression.as_ref().expect("it is not as printed");
    assert!(
        regression.symptom.starts_with("dqoes: not as printed (satisfied): 7"),
        "{regression:#?}"
    );
    let text = regression.sentences.join("\n");
    assert!(text.contains("The job that lost most is slow: batch latency is +0."), "{text}");
}

#[test]
fn job_that_lost_by_a_move_is_explained_by_that_decision() {
    let none = "0".repeat(64);
    let line = |at: f64, entry: &str| {
        format!(r#"{{"seq":1,"at":{},"prev":"{none}","hash":"{none}",{entry}}}"#, BEGAN + at)
    };
    let decided = |at: f64, number: u32, job: &str, to: Option<&str>| {
        let to = to.map_or(String::new(), |to| format!(r#""moves_to":"{to}","#));
        line(
            at,
            &format!(
                r#""what":"decided","number":{number},"job":"{job}","class":"CC","score":0.001,"chosen":1.0,{to}"why":"w""#
            ),
        )
    };
    let moved = |at: f64, job: &str, seconds: f64| {
        line(
            at,
            &format!(
                r#""what":"moved","job":"{job}","container":"c","successor":"d","from":"a","to":"b","reason":"to even out the nodes","saving":0.1,"seconds":{seconds}"#
            ),
        )
    };
    let log = [
        decided(10.0, 3, "vae", Some("b")),
        moved(12.0, "vae", 1.5),
        decided(18.0, 5, "vae", Some("b")),
        decided(18.1, 5, "gru", Some("b")),
        decided(20.0, 6, "vae", Some("a")),
        decided(22.0, 7, "vae", None),
        moved(24.0, "vae", 3.5),
        moved(40.0, "gru", 9.0),
    ];
    let log = entries(&log.join("\n"));
    let text = longest_move(&log, "vae", BEGAN).unwrap().join("\n");
    assert!(text.contains("but a move stopped it 20.5 s after"), "{text}");
    assert!(text.contains("decision 5: vae") && !text.contains("decision 6"), "{text}");
    assert!(text.contains("vae was moved from a to b: to even out"), "{text}");
    assert_eq!(longest_move(&log, "mnist", BEGAN), None);
}
