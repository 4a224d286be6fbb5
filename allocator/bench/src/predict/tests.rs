use std::collections::BTreeMap;

use paceline_node::migration::MigrationMethod;
use paceline_sim::fit::Recording;
use paceline_sim::{Run, Scenario};

use super::super::analysis::{analyse, analyse_by};
use super::super::calibrate::SoloRun;
use super::super::outcome::example::{FEW, START, Simulated, disturb};
use super::super::outcome::{ArmFindings, Findings};
use super::super::probe::mean_speed;
use super::super::record::{self, SpeedSample};
use super::super::remarks::remarks;

fn arm<'a>(findings: &'a Findings, name: &str) -> &'a ArmFindings {
    findings.arms.iter().find(|arm| arm.facts.name == name).unwrap()
}

#[test]
fn fit_to_the_baseline_predicts_another_policy() {
    let analysis = Simulated::bench(3).analyse();
    let findings = &analysis.findings;
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
    assert!(analysis.scenario.is_some_and(|text| text.contains("mnist-p")));
}

#[test]
fn startup_work_is_found_from_the_machines_use() {
    let text = Simulated::bench(3).analyse().scenario.unwrap();
    let jobs = Scenario::parse(&text).unwrap().draw(1);
    let start = |name: &str| {
        let job = jobs.iter().find(|job| job.id.as_str() == name).unwrap();
        (job.arrive, job.start.unwrap())
    };
    for (name, at) in [("vae", 0.0), ("mnist-p", 10.0), ("mnist-t", 20.0)] {
        let (arrive, found) = start(name);
        assert!((found.work - START).abs() < 0.05 * START, "{name}: {found:?}");
        assert!((found.seconds - 2.0 * found.work).abs() < 1e-6, "one CPU of two: {found:?}");
        assert!((arrive - at).abs() < 0.1, "{name} waits as long as the first: {arrive}");
    }
}

#[test]
fn simultaneous_startups_share_their_work() {
    let text = Simulated::arriving(3, |_| [0.0, 10.0, 10.4]).analyse().scenario.unwrap();
    let jobs = Scenario::parse(&text).unwrap().draw(1);
    let work = |job: &paceline_sim::scenario::Job| job.start.unwrap().work;
    let both: f64 = jobs.iter().filter(|job| job.id.as_str() != "vae").map(work).sum();
    assert!((both - 2.0 * START).abs() < 0.1 * START, "{both}: {text}");
}

#[test]
fn speed_that_jobs_do_not_follow_slows_no_prediction() {
    let mut simulated = Simulated::bench(3);
    let predicted = |simulated: &Simulated| {
        let findings = simulated.analyse().findings;
        let run = arm(&findings, "flowcon-published").runs.iter().find(|run| run.repeat == 1);
        run.unwrap().both("completion_mean").1.unwrap()
    };
    let steady = predicted(&simulated);
    for run in &mut simulated.runs {
        // The same work takes the same CPU time under `none`, whatever the probe measures.
        let passes = if run.run.repeat < 2 { 50.0 } else { 100.0 };
        probed(&mut run.run, &[(0.0, passes)]);
    }
    let same = predicted(&simulated);
    assert!((same / steady - 1.0).abs() < 0.05, "{same} and {steady}");
}

#[test]
fn each_run_is_predicted_with_its_background_load() {
    let mut simulated = Simulated::bench(3);
    let predicted = |simulated: &Simulated| {
        let findings = simulated.analyse().findings;
        let of = |repeat| {
            let runs = &arm(&findings, "flowcon-published").runs;
            let run = runs.iter().find(|run| run.repeat == repeat).unwrap();
            run.both("completion_mean").1.unwrap()
        };
        [of(2), of(3)]
    };
    let before = predicted(&simulated);
    let of = |arm: &'static str| {
        move |run: &&mut record::Recorded| run.run.arm == arm && run.run.repeat == 2
    };
    // The load of one fitted run does not change the prediction of others.
    let fitted = simulated.runs.iter_mut().find(of("none")).unwrap();
    fitted.run.host.others = fitted.run.host.others.map(|share| share + 0.04);
    let same = predicted(&simulated);
    let run = simulated.runs.iter_mut().find(of("flowcon-published")).unwrap();
    run.run.host.others = run.run.host.others.map(|share| share + 0.04);
    let slower = predicted(&simulated);
    for (before, same) in before.iter().zip(&same) {
        assert!((same / before - 1.0).abs() < 0.005, "{before} and {same}");
    }
    assert!((1.02..1.07).contains(&(slower[0] / same[0])), "{same:?} and {slower:?}");
    assert!((slower[1] / same[1] - 1.0).abs() < 1e-9, "{same:?} and {slower:?}");
}

#[test]
fn oracle_is_predicted_by_declared_work() {
    let findings = Simulated::oracle(3).analyse().findings;
    let oracle = arm(&findings, "oracle");
    let found = oracle.fidelity.iter().find(|found| found.figure == "completion_mean").unwrap();
    assert!(found.holds && found.jobs_hold == Some(true), "{found:#?}");
    let vae = &oracle.jobs[0];
    assert!(vae.figure("completion").unwrap().measured.mean < 35.0, "it goes first: {vae:#?}");
}

#[test]
fn fit_of_two_nodes_predicts_moves_between_them() {
    let findings = Simulated::on_two_nodes(3).analyse().findings;
    assert_eq!(findings.prediction.why_not, None);
    let specon = arm(&findings, "specon");
    let found = specon.fidelity.iter().find(|found| found.figure == "completion_mean").unwrap();
    assert!(found.holds && found.jobs_hold == Some(true), "{found:#?}");
    let moves = specon.figure("moves").unwrap();
    assert!(moves.predicted.is_some_and(|moves| moves > 0.0), "{moves:?}");
    let own = specon.figure("completion_mean").unwrap();
    assert!(own.over_bound.is_some_and(|over| over > 1.0), "{own:?}");
}

#[test]
fn job_that_cannot_move_leaves_no_prediction() {
    let mut simulated = Simulated::on_two_nodes(3);
    simulated.about.jobs[0].job.checkpoint = None;
    let predicted = |simulated: &Simulated| {
        let findings = simulated.analyse().findings;
        arm(&findings, "specon").figure("completion_mean").unwrap().predicted
    };
    assert_eq!(predicted(&simulated), None);
    for arm in &mut simulated.arms {
        arm.migration = Some(MigrationMethod::Cpuset);
    }
    assert!(predicted(&simulated).is_some(), "its CPUs can be changed all the same");
}

#[test]
fn prediction_with_a_large_error_does_not_hold() {
    let mut simulated = Simulated::bench(3);
    let slower = simulated.runs.iter_mut().filter(|run| run.run.arm != "none");
    slower
        .flat_map(|run| &mut run.run.jobs)
        .for_each(|job| job.ended += 0.3 * (job.ended - job.arrived));
    let findings = simulated.analyse().findings;
    let flowcon = arm(&findings, "flowcon-published");
    let found = flowcon.fidelity.iter().find(|found| found.figure == "completion_mean").unwrap();
    assert!(!found.holds && found.jobs_hold == Some(false), "{found:#?}");
    assert!((-0.28..-0.18).contains(&found.error), "{found:#?}");
}

#[test]
fn each_run_is_predicted_at_its_own_speed() {
    let mut simulated = Simulated::bench(3);
    let predicted = |simulated: &Simulated| {
        let findings = simulated.analyse().findings;
        let of = |name: &str| {
            let run = arm(&findings, name).runs.iter().find(|run| run.repeat == 2).unwrap();
            run.both("completion_mean").1.unwrap()
        };
        (of("none"), of("flowcon-published"), remarks(&findings).join("\n"))
    };
    let (none, flowcon, remarks_text) = predicted(&simulated);
    assert!(!remarks_text.contains("speed:"), "{remarks_text}");
    for run in &mut simulated.runs {
        let is_slow = run.run.arm == "flowcon-published" && run.run.repeat == 2;
        probed(&mut run.run, &[(0.0, if is_slow { 50.0 } else { 100.0 })]);
    }
    let (same, slower, remarks_text) = predicted(&simulated);
    assert!((same - none).abs() < 1e-9, "{same} is {none}");
    assert!(slower > 1.8 * flowcon, "twice the work takes {slower}, and not {flowcon}");
    assert!(
        remarks_text.contains("the slowest run had 50 % of its speed in the fastest"),
        "{remarks_text}"
    );
}

#[test]
fn job_is_predicted_at_the_speed_while_it_ran() {
    let mut simulated = Simulated::bench(3);
    let mut predicted = |passes: &[(f64, f64)]| {
        for run in &mut simulated.runs {
            let is_it = run.run.arm == "flowcon-published" && run.run.repeat == 2;
            probed(&mut run.run, if is_it { passes } else { &[(0.0, 100.0)] });
        }
        let findings = simulated.analyse().findings;
        let runs = &arm(&findings, "flowcon-published").runs;
        let run = runs.iter().find(|run| run.repeat == 2).unwrap();
        let of = |place: usize| run.both_of_job(place, "completion").1.unwrap();
        (of(2), of(0))
    };
    let (short, long) = predicted(&[(0.0, 100.0)]);
    let turn = 30.0 + short;
    let slower = predicted(&[(0.0, 100.0), (turn, 50.0)]);
    assert!((slower.0 - short).abs() < 1e-9, "it was over by then: {slower:?}, {short}");
    let rest = long - turn;
    assert!(
        (slower.1 - long - rest).abs() < 0.05 * rest,
        "the rest of it twice: {slower:?}, {long}"
    );
    let faster = predicted(&[(0.0, 200.0), (turn, 100.0)]);
    assert!(faster.0 < 0.7 * short, "{faster:?}, {short}");
}

#[test]
fn missing_frames_leave_a_reason_and_no_prediction() {
    let simulated = Simulated::bench(1);
    let mut observed = simulated.observed();
    for run in &mut observed {
        run.frames = Err("cannot read runs/001-none/frames.jsonl".to_owned());
    }
    let about = simulated.about.clone();
    let analysis = analyse(about, &simulated.arms, &observed, &[]);
    let why = analysis.findings.prediction.why_not.unwrap();
    assert!(why.contains("frames.jsonl"), "{why}");
    assert_eq!(analysis.scenario, None);
    assert!(analysis.findings.arms.iter().all(|arm| arm.fidelity.is_empty()));
}

#[test]
fn disturbed_runs_are_not_compared_with_predictions() {
    let mut simulated = Simulated::bench(2);
    disturb(&mut simulated.runs, "flowcon-published", None);
    let findings = simulated.analyse().findings;
    let flowcon = arm(&findings, "flowcon-published");
    assert_eq!(flowcon.fidelity, []);
    let figure = flowcon.figure("completion_mean").unwrap();
    assert!(figure.disturbed && figure.measured.mean > 1.0, "{figure:?}");
    assert_eq!((figure.predicted, figure.over_bound), (None, None));
    assert!(!arm(&findings, "none").fidelity.is_empty());
    disturb(&mut simulated.runs, "none", None);
    let prediction = simulated.analyse().findings.prediction;
    assert_eq!(prediction.why_not.as_deref(), Some("every run of `none` was disturbed"));
}

#[test]
fn drawn_arrivals_are_predicted_repeat_by_repeat() {
    let mut simulated = Simulated::arriving(3, |repeat| match repeat {
        1 => [0.0, 70.0, 120.0],
        2 => [5.0, 5.0, 5.0],
        _ => [30.0, 10.0, 0.0],
    });
    disturb(&mut simulated.runs, "flowcon-published", Some(2));
    let findings = simulated.analyse().findings;
    for arm in &findings.arms {
        let found = arm.fidelity.iter().find(|found| found.figure == "completion_mean").unwrap();
        assert!(found.error.abs() < 0.02 && found.jobs_hold == Some(true), "{found:#?}");
        assert!(found.spread.is_some_and(|spread| spread < 0.05), "{found:#?}");
        // No policy leaves the machine idle while there is work.
        let over = arm.figure("makespan").and_then(|figure| figure.over_bound).unwrap();
        assert!((1.0..1.1).contains(&over), "{}: {over}", arm.facts.name);
    }
    for run in &arm(&findings, "none").runs {
        for job in &run.jobs {
            let fairness = job.figures["fairness"].unwrap();
            assert!((0.95..1.15).contains(&fairness), "repeat {}: {fairness}", run.repeat);
        }
    }
}

#[test]
fn stopped_jobs_are_predicted_and_judged_by_batches_only() {
    let analysis = Simulated::inference(3).analyse();
    let findings = &analysis.findings;
    assert_eq!(findings.prediction.why_not, None);
    for arm in &findings.arms {
        for name in ["completion_mean", "makespan", "slowdown_mean"] {
            assert_eq!(arm.figure(name), None, "{name}");
        }
        let mean = |name: &str| arm.figure(name).map(|figure| figure.measured.mean);
        assert_eq!((mean("unfinished"), mean("jobs_mean")), (Some(0.0), Some(3.0)));
        assert!(arm.jobs.iter().all(|job| job.figure("completion").is_none()));
        let figures: Vec<&str> = arm.fidelity.iter().map(|found| found.figure.as_str()).collect();
        assert_eq!(figures, ["satisfied", "met"]);
        assert!(arm.fidelity.iter().all(|found| found.holds), "{:#?}", arm.fidelity);
    }
    let satisfied = |name: &str| arm(findings, name).figure("satisfied").unwrap().measured.mean;
    assert!(satisfied("dqoes") > satisfied("none"), "the policy differs");
    let bounds = &findings.prediction.bounds;
    assert_eq!(bounds.get("met").map(|bound| bound.limit), Some(3.0));
    assert_eq!(bounds.get("completion_mean"), None);
    let text = analysis.scenario.unwrap();
    let scenario = Scenario::parse(&text).unwrap();
    // All three start at once, which takes 1.5 s.
    assert!((58.3..58.6).contains(&scenario.until), "{text}");
    assert!(scenario.draw(1).iter().all(|job| job.work.is_infinite()), "{text}");
}

#[test]
fn job_without_calibration_is_fitted_from_an_equal_one() {
    let mut simulated = Simulated::bench(1);
    for facts in &mut simulated.about.jobs {
        let name = facts.job.name.clone();
        let program = name.split('-').next().unwrap().to_owned();
        facts.job.command = vec![program, "--seed".to_owned(), name];
    }
    simulated.runs.iter_mut().for_each(|run| probed(&mut run.run, &[(0.0, 100.0)]));
    let observed = simulated.observed();
    let fitted = |speeds: BTreeMap<String, f64>| {
        let calibration = [SoloRun { recording: alone("mnist-p"), speeds }];
        let about = simulated.about.clone();
        let analysis = analyse_by(FEW, about, &simulated.arms, &observed, &calibration);
        let contention = analysis.findings.prediction.contention.unwrap();
        (contention, Scenario::parse(&analysis.scenario.unwrap()).unwrap().draw(1))
    };
    let at = |speed: f64| BTreeMap::from([("mnist-p".to_owned(), speed)]);
    // Without the machine's speed the calibration's batch durations are ignored; with it they are converted.
    for speeds in [BTreeMap::new(), at(50.0)] {
        let (contention, jobs) = fitted(speeds);
        assert!((contention - 0.03).abs() < 0.015, "{contention}");
        let job = |name: &str| jobs.iter().find(|job| job.id.as_str() == name).unwrap();
        for like in ["mnist-p", "mnist-t"] {
            assert!((job(like).parallel - 0.6).abs() < 0.01, "{like}: {}", job(like).parallel);
            assert!((job(like).batch - 0.05).abs() < 0.005, "{like}: {}", job(like).batch);
        }
        assert!(job("vae").parallel > 0.99, "it was not calibrated: {}", job("vae").parallel);
    }
    let (_, jobs) = fitted(at(100.0));
    let like = jobs.iter().find(|job| job.id.as_str() == "mnist-p").unwrap();
    assert!((like.batch - 0.05).abs() > 0.01, "at a wrong speed it is another: {}", like.batch);
}

/// Sets the probe's samples of a run: pairs of seconds and passes.
fn probed(run: &mut record::Run, passes: &[(f64, f64)]) {
    run.speed_samples = passes.iter().map(|&(t, passes)| SpeedSample { t, passes }).collect();
    run.host.speed = mean_speed(&run.speed_samples);
}

/// The frames of a job of [`Simulated::bench`] alone, on a machine that is half as fast. The job can use only a
/// part of it.
fn alone(name: &str) -> Recording {
    let text = format!(
        "name = \"alone\"\ndescription = \"\"\npolicies = [\"none\"]\n[params.none]\ninterval = 2\n\
         [[node]]\nname = \"n\"\ncpus = 2\nbackground = 0.02\n\
         [[job]]\nname = \"{name}\"\nwork = 10\nbatch = {{ work = 0.1 }}\nbatch_latency = 0.2\n\
         parallel = 0.6\n"
    );
    let (scenario, arm) = (Scenario::parse(&text).unwrap(), "none".parse().unwrap());
    let run = Run { scenario: &scenario, arm: &arm, seed: 1, record: true };
    let lines = run.simulate().unwrap().lines;
    let frames: Vec<&str> = lines.iter().map(|line| line.frame.as_str()).collect();
    Recording::parse(&frames.join("\n")).unwrap()
}
