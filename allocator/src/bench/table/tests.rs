use super::super::containers::LimitLeft;
use super::super::outcome::example::{Simulated, bare, example, judged};
use super::super::outcome::judge;
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
    let (judged, _) = judged(&["none", "flowcon"], &["a", "b"]);
    let text = printed(&judged.findings);
    let row = text.lines().find(|line| line.starts_with("b ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["b", "30", "30", "(+0.0", "%)"]);
    assert!(text.contains("limits: every limit was put back"), "{text}");
}

#[test]
fn many_arms_stay_within_the_width_and_none_is_lost() {
    let arms = ["none", "flowcon", "third", "fourth", "fifth", "sixth", "seventh", "eighth-one"];
    let (judged, _) = judged(&arms, &["a-rather-long-name-of-a-job", "b"]);
    let text = printed(&judged.findings);
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
    let text = printed(&judge(about, &facts, &observed, &[]).findings);
    assert!(text.contains("failed: exit 3"), "{text}");
    assert!(text.contains("limits: none left a with NanoCpus 5 and CpuQuota 0"), "{text}");
    assert!(!text.contains("put back") && !text.contains("change against"), "{text}");
}

#[test]
fn error_spread_and_verdict_of_the_prediction_are_printed() {
    let findings = Simulated::bench(2).judge().findings;
    let text = printed(&findings);
    fits(&text);
    // Error and spread, and the worst job's: the table may be too wide for one.
    let rows = text.lines().filter(|line| line.starts_with("flowcon-published  mean completion"));
    let shown = rows.collect::<Vec<&str>>().concat();
    assert!(shown.matches('%').count() >= 4 && shown.contains("yes"), "{text}");
    assert!(text.contains("prediction: fitted to none, repeat "), "{text}");
}
