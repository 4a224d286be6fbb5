use super::super::analysis::analyse;
use super::super::containers::LimitLeft;
use super::super::outcome::example::{Simulated, analysed, bare, disturb, example};
use super::*;

fn printed(findings: &Findings) -> String {
    let mut text = Vec::new();
    print(findings, &mut text).expect("memory takes it");
    String::from_utf8(text).expect("text")
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}

#[test]
fn each_arm_has_its_column_and_each_job_its_row() {
    let (analysis, _) = analysed(&["none", "flowcon"], &["a", "b"]);
    let text = printed(&analysis.findings);
    let row = text.lines().find(|line| line.starts_with("b ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["b", "30", "30", "(+0.0", "%)"]);
    assert!(text.contains("limits: the allocator restored every limit"), "{text}");
}

#[test]
fn many_arms_stay_within_the_width_and_none_is_lost() {
    let arms = ["none", "flowcon", "third", "fourth", "fifth", "sixth", "seventh", "eighth-one"];
    let (analysis, _) = analysed(&arms, &["a-rather-long-name-of-a-job", "b"]);
    let text = printed(&analysis.findings);
    fits(&text);
    assert!(arms.iter().all(|arm| text.contains(arm)), "{text}");
}

#[test]
fn failures_and_limits_left_are_shown() {
    let (about, facts, mut runs) = example(&["none"], &["a"]);
    runs[0].run.jobs[0].exit_code = 3;
    let left = LimitLeft { job: "a".to_owned(), nano_cpus: 5, cpu_quota: 0 };
    runs[0].run.limits_left.push(left);
    let observed: Vec<_> = runs.iter().map(bare).collect();
    let text = printed(&analyse(about, &facts, &observed, &[]).findings);
    assert!(text.contains("failed: exit 3"), "{text}");
    assert!(text.contains("limits: none left a with NanoCpus 5 and CpuQuota 0"), "{text}");
    assert!(!text.contains("restored") && !text.contains("change from"), "{text}");
}

/// The example whose runs of these arms and repeats were disturbed, as it is printed.
fn printed_of(disturbed: &[(&str, Option<u32>)]) -> String {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    for run in runs.iter_mut().filter(|run| run.run.arm == "flowcon") {
        run.run.jobs[0].ended = 33.0;
    }
    for (arm, repeat) in disturbed {
        disturb(&mut runs, arm, *repeat);
    }
    let observed: Vec<_> = runs.iter().map(bare).collect();
    printed(&analyse(about, &facts, &observed, &[]).findings)
}

#[test]
fn figures_of_disturbed_runs_are_printed_and_marked() {
    let text = printed_of(&[("none", None), ("flowcon", None)]);
    fits(&text);
    let first = text.split_inclusive("\n\n").take(2).collect::<String>();
    assert_eq!(
        first,
        "Completion: seconds from a job's arrival to its end (change from none)

job              none         flowcon
a                 30*  33* (+10.0 %*)
mean completion   30*  33* (+10.0 %*)
makespan          30*  33* (+10.0 %*)
* disturbed: other work took 51 % of the machine (none, repeat 1); other work took 52 % of the
  machine (none, repeat 2)
* disturbed: other work took 51 % of the machine (flowcon, repeat 1); other work took 52 % of the
  machine (flowcon, repeat 2)

"
    );
    assert!(text.contains("disturbed: every run of none, flowcon; their figures have"), "{text}");
    assert!(text.contains("runs: 4 of 4 disturbed; --redo-spoiled repeats them"), "{text}");
    assert!(text.contains("prediction: none: every run of `none` was disturbed"), "{text}");
}

#[test]
fn change_from_disturbed_runs_of_none_is_marked() {
    let text = printed_of(&[("none", None)]);
    let row = text.lines().find(|line| line.starts_with("a ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["a", "30*", "33", "(+10.0", "%*)"]);
    assert!(!text.contains("(flowcon, repeat"), "{text}");
}

#[test]
fn disturbed_run_beside_others_is_listed_separately() {
    let text = printed_of(&[("flowcon", Some(2))]);
    fits(&text);
    let row = text.lines().find(|line| line.starts_with("a ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["a", "30", "33", "(+10.0", "%)"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let left_out = "disturbed, left out of the means: other work took 52 % of the machine \
                    (flowcon, repeat 2); mean completion 33 s; makespan 33 s";
    assert!(text.contains(left_out), "{text}");
    assert!(text.contains("runs: 1 of 4 disturbed") && !text.contains("33*"), "{text}");
}

#[test]
fn arm_of_disturbed_runs_is_not_judged() {
    let mut simulated = Simulated::bench(2);
    disturb(&mut simulated.runs, "flowcon-published", None);
    let text = printed(&simulated.analyse().findings);
    fits(&text);
    let rows = text.lines().filter(|line| line.contains("flowcon-published"));
    let rows: Vec<&str> = rows.filter(|line| line.contains("not judged")).collect();
    assert!(rows.iter().any(|row| row.contains("every run disturbed")), "{text}");
    assert!(rows.iter().any(|row| row.contains("FlowCon")), "{text}");
}

#[test]
fn error_spread_and_verdict_of_the_prediction_are_printed() {
    let findings = Simulated::bench(2).analyse().findings;
    let text = printed(&findings);
    fits(&text);
    // Error and spread, and the worst job's: the table may be too wide for one.
    let rows = text.lines().filter(|line| line.starts_with("flowcon-published  mean completion"));
    let shown = rows.collect::<Vec<&str>>().concat();
    assert!(shown.matches('%').count() >= 4 && shown.contains("yes"), "{text}");
    assert!(text.contains("prediction: fitted to none, repeat "), "{text}");
}
