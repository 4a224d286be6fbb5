use paceline_api::samples::SampleJob;

use super::super::analysis::analyse;
use super::super::grid;
use super::super::schedule::Job;
use super::example::{
    BEGAN, Simulated, about, analysed, arm, bare, disturb, example, job, recorded, running,
};
use super::trajectory::Trajectory;
use super::*;

/// The results of one run of these jobs under `none`.
fn one(jobs: &[Job], run: &super::super::record::Recorded) -> ArmFindings {
    let observed = [bare(run)];
    let analysis = analyse(about("demo", jobs), &[arm("none", "none")], &observed, &[]);
    analysis.findings.arms.into_iter().next().unwrap()
}

fn mean_of(arm: &ArmFindings, name: &str) -> Option<f64> {
    arm.figure(name).map(|figure| figure.measured.mean)
}

const JOBS: [(&str, f64, f64); 2] = [("a", 5.0, 65.0), ("b", 10.0, 50.0)];

fn jobs() -> [Job; 2] {
    [job("a", 5.0), job("b", 10.0)]
}

#[test]
fn completion_counts_from_arrival_and_makespan_from_the_first() {
    let arm = one(&jobs(), &recorded("none", 1, &JOBS, []));
    let completion = |at: usize| arm.jobs[at].figure("completion").map(|it| it.measured.mean);
    assert_eq!((completion(0), completion(1)), (Some(60.0), Some(40.0)));
    assert_eq!(mean_of(&arm, "completion_mean"), Some(50.0));
    assert_eq!(mean_of(&arm, "makespan"), Some(60.0));
    let at_once = mean_of(&arm, "jobs_mean").unwrap();
    assert!((at_once - 100.0 / 60.0).abs() < 1e-9, "{at_once}");
}

#[test]
fn failed_job_has_no_completion_and_leaves_no_mean() {
    let mut run = recorded("none", 1, &JOBS, []);
    run.run.jobs[1].exit_code = 3;
    let arm = one(&jobs(), &run);
    assert_eq!(arm.runs[0].jobs[1].failure.as_deref(), Some("failed: exit 3"));
    assert!(arm.jobs[1].figure("completion").is_none());
    assert_eq!((mean_of(&arm, "completion_mean"), mean_of(&arm, "makespan")), (None, None));
    assert!(arm.jobs[0].figure("completion").is_some());
    run.run.jobs[1].exit_code = 0;
    run.run.jobs[1].out_of_memory = true;
    let arm = one(&jobs(), &run);
    assert_eq!(arm.runs[0].jobs[1].failure.as_deref(), Some("failed: out of memory"));
}

#[test]
fn means_leave_out_warm_up_and_disturbed_runs() {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    for (run, ended) in runs.iter_mut().zip([30.0, 20.0, 40.0, 500.0]) {
        run.run.jobs[0].ended = ended;
    }
    disturb(&mut runs, "flowcon", Some(2));
    let mut warm_up = runs[1].clone();
    (warm_up.run.repeat, warm_up.run.jobs[0].ended) = (0, 900.0);
    runs.insert(0, warm_up);
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    let findings = analyse(about, &facts, &observed, &[]).findings;
    let [none, flowcon] = findings.arms.as_slice() else { panic!("two arms") };
    assert_eq!(mean_of(none, "completion_mean"), Some(35.0));
    let figure = flowcon.figure("completion_mean").unwrap();
    assert_eq!((figure.measured.mean, figure.difference.map(|it| it.mean)), (20.0, Some(-10.0)));
    assert_eq!((flowcon.runs.len(), flowcon.counted().count()), (2, 1));
}

#[test]
fn arm_without_undisturbed_runs_has_marked_means() {
    let (about, facts, mut runs) = example(&["none", "flowcon"], &["a"]);
    for (run, ended) in runs.iter_mut().zip([30.0, 20.0, 40.0, 50.0]) {
        run.run.jobs[0].ended = ended;
    }
    disturb(&mut runs, "flowcon", None);
    let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
    let findings = analyse(about, &facts, &observed, &[]).findings;
    let [none, flowcon] = findings.arms.as_slice() else { panic!("two arms") };
    assert!(!none.is_disturbed() && flowcon.is_disturbed());
    let figure = none.figure("completion_mean").unwrap();
    assert!(!figure.disturbed && figure.measured.half.is_some(), "{figure:?}");
    for figure in [flowcon.figure("completion_mean"), flowcon.jobs[0].figure("completion")] {
        let figure = figure.unwrap();
        assert_eq!((figure.measured.mean, figure.measured.half), (35.0, None));
        assert_eq!(figure.difference.map(|it| (it.mean, it.half)), Some((0.0, None)));
        assert!(figure.disturbed && figure.difference_disturbed && figure.spread.is_none());
    }
}

#[test]
fn arm_without_baseline_has_no_difference() {
    let (analysis, _) = analysed(&["flowcon"], &["a"]);
    let figure = analysis.findings.arms[0].figure("completion_mean").unwrap();
    assert_eq!((figure.difference, figure.change()), (None, None));
}

#[test]
fn job_is_acceptable_once_a_seconds_mean_loss_is() {
    let lossy = |loss| SampleJob { target_acceptable: Some(20.0), ..running("a", loss, 1) };
    let samples = [(6.0, vec![lossy(90.0)]), (7.0, vec![lossy(20.0)]), (8.0, vec![lossy(10.0)])];
    let run = recorded("none", 1, &JOBS, samples.clone());
    let acceptable = |arm: &ArmFindings, at: usize| {
        arm.jobs[at].figure("acceptable").map(|figure| figure.measured.mean)
    };
    let arm = one(&jobs(), &run);
    assert_eq!((acceptable(&arm, 0), acceptable(&arm, 1)), (Some(2.0), None));
    let reported = |at| SampleJob { acceptable_at: Some(BEGAN + at), ..lossy(90.0) };
    let run = recorded("none", 1, &JOBS, [(6.0, vec![reported(5.5)]), (7.0, vec![reported(6.5)])]);
    assert_eq!(acceptable(&one(&jobs(), &run), 0), Some(0.5), "the job's own report is exact");
    let run = recorded("none", 1, &JOBS, samples);
    let mut up = jobs();
    up[0].labels.insert("paceline.direction".to_owned(), "maximize".to_owned());
    assert_eq!(acceptable(&one(&up, &run), 0), Some(1.0));
}

#[test]
fn loss_area_is_time_weighted_by_the_remaining_fall() {
    let losses = [(1.0, 100.0), (2.0, 50.0), (3.0, 50.0), (4.0, 0.0), (5.0, 0.0)];
    let sample = |(t, loss): &(f64, f64)| (*t, vec![running("a", *loss, 1)]);
    let more = (6..10).map(|t| (f64::from(t), vec![running("a", 0.0, 1)]));
    let samples: Vec<_> = losses.iter().map(sample).chain(more).collect();
    let arm = one(&[job("a", 0.0)], &recorded("none", 1, &[("a", 0.0, 10.0)], samples));
    let area = mean_of(&arm, "loss_area").unwrap();
    assert!((area - 2.0).abs() < 1e-9, "one second at 1 and two at a half: {area}");
}

#[test]
fn unknown_figures_are_null_and_never_0() {
    let (analysis, _) = analysed(&["none", "flowcon"], &["a"]);
    let json = serde_json::to_value(&analysis.findings).unwrap();
    let figures = &json["arms"][1]["figures"];
    for name in ["satisfied", "writes", "reaction", "slowdown_mean", "acceptable_mean"] {
        assert!(
            figures[name].is_null() && figures.get(name).is_some(),
            "{name}: {}",
            figures[name]
        );
    }
    assert!(figures["utilisation"]["mean"].is_number(), "{figures}");
    assert!(json["prediction"]["why_not"].is_string(), "{}", json["prediction"]);
}

#[test]
fn utilisation_and_stranded_are_percent_of_the_machine() {
    let samples = (0..=30).map(|t| (f64::from(t), vec![running("a", 1.0, 1)]));
    let arm = one(&[job("a", 0.0)], &recorded("none", 1, &[("a", 0.0, 30.0)], samples));
    let (used, stranded) = (mean_of(&arm, "utilisation"), mean_of(&arm, "stranded"));
    assert!((used.unwrap() - 40.0).abs() < 1e-6, "{used:?}");
    assert!(
        (stranded.unwrap() - 5.0).abs() < 1e-6,
        "a tenth was idle, half of the time: {stranded:?}"
    );
}

#[test]
fn move_does_not_hide_the_utilisation_of_the_rest() {
    let replacement = || SampleJob { cpu: None, ..running("a", 1.0, 1) };
    let its = |t| if t == 10 { replacement() } else { running("a", 1.0, 1) };
    let samples = (0..=30).map(|t| (f64::from(t), vec![its(t)]));
    let arm = one(&[job("a", 0.0)], &recorded("none", 1, &[("a", 0.0, 30.0)], samples));
    let used = mean_of(&arm, "utilisation");
    assert!(used.is_some_and(|used| (used - 40.0).abs() < 1e-6), "{used:?}");
}

#[test]
fn findings_read_back_as_they_were_written() {
    let findings = Simulated::bench(2).analyse().findings;
    let text = serde_json::to_string(&findings).unwrap();
    let read: Findings = serde_json::from_str(&text).unwrap();
    let shown = |findings: &Findings| {
        let words: Vec<_> = findings.claims.iter().map(|claim| claim.reason.clone()).collect();
        (grid::figures(findings), grid::fidelity(findings), grid::claims(findings), words)
    };
    assert_eq!(shown(&read), shown(&findings));
}

#[test]
fn findings_of_earlier_versions_are_read() {
    fn forget(json: &mut serde_json::Value) {
        if let Some(fields) = json.as_object_mut() {
            let newer = ["disturbed", "difference_disturbed", "partial"];
            fields.retain(|name, _| !newer.contains(&&**name));
            fields.values_mut().for_each(forget);
        } else if let Some(values) = json.as_array_mut() {
            values.iter_mut().for_each(forget);
        }
    }
    let (analysis, _) = analysed(&["none", "flowcon"], &["a", "b"]);
    let mut json = serde_json::to_value(&analysis.findings).unwrap();
    forget(&mut json);
    assert!(json["arms"][1]["figures"]["makespan"].get("disturbed").is_none());
    assert_eq!(serde_json::from_value::<Findings>(json).unwrap(), analysis.findings);
}

#[test]
fn measured_run_has_plausible_figures() {
    let simulated = Simulated::bench(1);
    let observed = simulated.observed();
    let reference = ReferenceTimes::from_runs(&simulated.about, &observed);
    let of = |arm: &str| {
        let own = |run: &&Observed<'_>| run.recorded.run.arm == arm && run.recorded.run.repeat == 1;
        let run = observed.iter().find(own).unwrap();
        let trajectory = Trajectory::measured(&simulated.about.jobs, run, &reference);
        figures(&trajectory, Some(&run.recorded.run))
    };
    let (none, flowcon) = (of("none"), of("flowcon-published"));
    let known = |name: &str| none[name].unwrap();
    assert!(known("utilisation") > 85.0 && known("utilisation") <= 98.1, "{none:?}");
    assert!(known("loss_area") > 1.0 && known("loss_area") < known("completion_mean"), "{none:?}");
    assert!(known("acceptable_mean") > 1.0, "{none:?}");
    assert!(known("acceptable_mean") < known("completion_mean"), "{none:?}");
    assert_eq!((none["writes"], none["skipped"].is_some()), (Some(0.0), true), "{none:?}");
    let known = |name: &str| flowcon[name].unwrap();
    assert!(known("writes") > 0.0 && known("decisions") > 10.0, "{flowcon:?}");
}
