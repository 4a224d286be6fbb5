use std::collections::BTreeMap;

use super::example::{job, record, running};
use super::*;

fn judge(policy: &str, record: &Recorded) -> ArmOutcome {
    ArmOutcome::judge(policy, BTreeMap::new(), &[job("a", 5.0), job("b", 10.0)], record)
}

#[test]
fn completion_counts_from_the_arrival_and_makespan_from_the_first() {
    let arm = judge("none", &record(&[65.0, 50.0], []));
    let completions: Vec<_> = arm.jobs.iter().map(|job| job.completion).collect();
    assert_eq!(completions, [Some(Figure::of(60.0)), Some(Figure::of(40.0))]);
    assert_eq!(arm.mean, Some(Figure::of(50.0)));
    assert_eq!(arm.makespan, Some(Figure::of(60.0)));
}

#[test]
fn changes_are_against_none_wherever_it_stands() {
    let mut arms =
        [judge("flowcon", &record(&[65.0, 30.0], [])), judge("none", &record(&[65.0, 50.0], []))];
    compare_all(&mut arms);
    let [flowcon, none] = arms;
    let change = |figure: Option<Figure>| figure.and_then(|figure| figure.change);
    assert_eq!(change(flowcon.jobs[1].completion), Some(-50.0));
    assert_eq!(change(flowcon.mean).map(f64::round), Some(-20.0));
    assert_eq!(change(flowcon.makespan), Some(0.0));
    assert_eq!(change(none.mean), None);
}

#[test]
fn without_none_there_is_no_change() {
    let mut arms = [judge("flowcon", &record(&[65.0, 30.0], []))];
    compare_all(&mut arms);
    assert_eq!(arms[0].mean.expect("a mean").change, None);
}

#[test]
fn a_failed_job_has_no_completion_and_leaves_no_mean() {
    let mut failing = record(&[65.0, 50.0], []);
    failing.run.jobs[1].exit_code = 3;
    let mut arms = [judge("none", &record(&[65.0, 50.0], [])), judge("flowcon", &failing)];
    compare_all(&mut arms);
    let [_, arm] = arms;
    assert_eq!(arm.jobs[1].failure().as_deref(), Some("failed: exit 3"));
    assert_eq!(arm.jobs[1].completion, None);
    assert_eq!((arm.mean, arm.makespan), (None, None));
    assert_eq!(arm.jobs[0].completion, Some(Figure { seconds: 60.0, change: Some(0.0) }));
}

#[test]
fn want_of_memory_is_a_failure_whatever_the_exit_code() {
    let mut record = record(&[65.0, 50.0], []);
    record.run.jobs[0].out_of_memory = true;
    let arm = judge("none", &record);
    assert_eq!(arm.jobs[0].failure().as_deref(), Some("failed: out of memory"));
}

#[test]
fn a_job_is_acceptable_from_the_first_second_whose_mean_loss_is() {
    let lossy = |loss| SampleJob { target_acceptable: Some(20.0), ..running("a", loss, 1) };
    let samples = [(6.0, vec![lossy(90.0)]), (7.0, vec![lossy(20.0)]), (8.0, vec![lossy(10.0)])];
    let record = record(&[65.0, 50.0], samples);
    let arm = judge("none", &record);
    assert_eq!(arm.jobs[0].acceptable, Some(Figure::of(2.0)));
    assert!(arm.jobs[0].has_acceptable && !arm.jobs[1].has_acceptable);

    let mut up = job("a", 5.0);
    up.labels.insert("paceline.direction".to_owned(), "maximize".to_owned());
    assert_eq!(acceptable(&up, &record), Some(Figure::of(1.0)));
}
