//! Recordings of simulations are fitted: the model's parameters must come out again.

mod nodes;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::curve::Curve;
use crate::residuals::Residuals;
use crate::scenario::{EarlyReports, Scenario};
use crate::{Outcome, Run};

const EXPONENTIAL: &str = r#"{ curve = "exponential", start = 540.0, end = 100.0, tau = 0.19 }"#;
const POWER: &str = r#"{ curve = "power", start = 2.3, end = 0.02, scale = 0.05, exponent = 0.8 }"#;
const RISING: &str = r#"{ curve = "exponential", start = 0.1, end = 0.9, tau = 0.3 }"#;

/// A node, and jobs with these lines each.
fn scenario(node: &str, jobs: &[(&str, String)]) -> Scenario {
    let head = format!(
        "name = \"x\"\ndescription = \"\"\npolicies = [\"none\"]\n[params.none]\ninterval = 2.0\n\
         [[node]]\nname = \"n\"\ncpus = 4\n{node}\n"
    );
    // A batch target makes the simulator sample until it is known which batches began after the
    // frame. The live controller always samples.
    let job = |(name, lines): &(&str, String)| {
        format!("[[job]]\nname = \"{name}\"\nbatch_latency = 1.0\n{lines}")
    };
    let text: Vec<String> = std::iter::once(head).chain(jobs.iter().map(job)).collect();
    Scenario::parse(&text.join("\n")).unwrap()
}

fn record(scenario: &Scenario, policy: &str) -> (Outcome, Recording) {
    let arm = policy.parse().unwrap();
    let done = Run { scenario, arm: &arm, seed: 3, record: true }.simulate().unwrap();
    let lines: Vec<&str> = done.lines.iter().map(|line| line.frame.as_str()).collect();
    (done.outcome, Recording::parse(&lines.join("\n")).unwrap())
}

fn fitted(fit: &Fit) -> Scenario {
    let heading = Heading { name: "x".into(), policies: vec!["none".into()], ..Heading::default() };
    let text = fit.scenario(&heading);
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn close(found: f64, truth: f64, part: f64) -> bool {
    (found - truth).abs() <= part * truth.abs()
}

/// The job as the scenario has it, under limits alone on the node.
fn alone(job: &str, max: f64) -> Recording {
    let job = format!("{job}\nmax = {max}");
    record(&scenario("contention = 0.08", &[("a", job)]), "none").1
}

#[test]
fn barely_running_neighbour_does_not_hide_contention() {
    let job = "work = 40\nbatch = { work = 0.1 }";
    let small = format!("arrive = {{ at = 10 }}\n{job}\nmax = 0.05");
    let equal = format!("arrive = {{ at = 30 }}\n{job}");
    let truth = scenario("contention = 0.2", &[("a", job.to_owned()), ("b", small), ("c", equal)]);
    let fit = fit(&record(&truth, "none").1, &[]).unwrap();
    assert!(close(fit.nodes[0].contention.unwrap(), 0.2, 0.02), "{fit:#?}");
    assert!(fit.jobs.iter().all(|job| close(job.work, 40.0, 0.01)), "{fit:#?}");
}

#[test]
fn jobs_with_different_contention_get_their_own() {
    let jobs = [("a", 0.3, 0, 60), ("b", 0.02, 30, 90), ("c", 0.3, 75, 30)].map(
        |(name, contention, arrive, work)| {
            let batch = "batch = { work = 0.1 }";
            let arrive = format!("arrive = {{ at = {arrive} }}");
            (name, format!("{arrive}\nwork = {work}\ncontention = {contention}\n{batch}"))
        },
    );
    let truth = scenario("", &jobs);
    let (_, recording) = record(&truth, "none");
    let fit = fit(&recording, &[]).unwrap();
    let common = fit.nodes[0].contention.unwrap();
    for (job, (contention, work)) in fit.jobs.iter().zip([(0.3, 60.0), (0.02, 90.0), (0.3, 30.0)]) {
        let found = job.contention.unwrap_or(common);
        assert!((found - contention).abs() < 0.01, "{}: {found}, {fit:#?}", job.id);
        assert!(close(job.work, work, 0.02), "{job:#?}");
    }
    let again = accuracy(&recording, &[record(&fitted(&fit), "none").0]);
    for job in &again.jobs {
        assert!(job.completion.error.unwrap().abs() < 0.01, "{job:#?}");
    }
}

#[test]
fn batch_noise_is_recovered() {
    let job = "work = 400\nbatch = { work = 0.1, noise = 0.2 }";
    let fit = fit(&record(&scenario("", &[("a", job.to_owned())]), "none").1, &[]).unwrap();
    let batch = fit.jobs[0].batch.unwrap();
    // Batches that had begun before the first sample do not count, either.
    assert!(close(batch.noise, 0.2, 0.15), "{batch:?}");
    assert!(close(batch.work, 0.1, 0.01), "{batch:?}");
}

#[test]
fn barely_running_neighbours_leave_contention_unknown() {
    let job = "work = 40\nbatch = { work = 0.1 }";
    let small = format!("arrive = {{ at = 10 }}\n{job}\nmax = 0.02");
    let truth = scenario("contention = 0.2", &[("a", job.to_owned()), ("b", small)]);
    let fit = fit(&record(&truth, "none").1, &[]).unwrap();
    assert_eq!(fit.nodes[0].contention, Err(Why::NoNeighbours));
}

#[test]
fn every_parameter_is_recovered() {
    let batch = "batch = { work = 0.05, fixed = 0.02 }\nthreads = 4\nthrottle_cost = 0.3";
    let a = format!("work = 60\nloss = {EXPONENTIAL}\nnoise = 0.02\n{batch}");
    let b = format!("arrive = {{ at = 15 }}\nwork = 30\nbatch = {{ work = 0.1 }}\nloss = {POWER}");
    let node = "contention = 0.08\nbackground = 0.05";
    let truth = scenario(node, &[("a", a.clone()), ("b", b)]);
    let (_, recording) = record(&truth, "none");
    let others = [1.0, 0.5, 0.25].map(|max| alone(&a, max));
    let fit = fit(&recording, &others).unwrap();

    assert!(close(fit.nodes[0].background.unwrap(), 0.05, 0.02), "{fit:#?}");
    assert!(close(fit.nodes[0].contention.unwrap(), 0.08, 0.02), "{fit:#?}");
    let [a, b] = fit.jobs.as_slice() else { panic!("{fit:#?}") };
    assert!(close(a.work, 60.0, 0.01) && close(b.work, 30.0, 0.01), "{fit:#?}");
    assert!(close(b.arrived, 15.0, 0.01) && a.ended && b.ended, "{fit:#?}");
    assert!(close(a.parallel.unwrap().mean, 1.0, 0.0), "{fit:#?}");
    let batch = a.batch.unwrap();
    assert!(close(batch.work, 0.05, 0.02) && close(batch.fixed.unwrap(), 0.02, 0.1), "{batch:?}");
    let throttling = batch.throttling.unwrap();
    assert!(close(throttling.cost, 0.3, 0.05) && close(throttling.threads, 4.0, 0.0), "{batch:?}");
    assert!(batch.error < 0.02, "{batch:?}");
    let learning = a.learning.clone().unwrap();
    let Curve::Exponential { start, end, tau } = learning.curve else { panic!("{learning:?}") };
    assert!(close(start, 540.0, 0.02) && close(end, 100.0, 0.02) && close(tau, 0.19, 0.03));
    assert!(close(learning.noise, 0.02, 0.4) && learning.error < 0.01, "{learning:?}");
    let learning = b.learning.clone().unwrap();
    assert!(matches!(learning.curve, Curve::Power { .. }), "{learning:?}");
    assert!(learning.error < 0.005 && close(learning.curve.at(0.0), 2.3, 0.02), "{learning:?}");
}

#[test]
fn weight_under_oversubscription_is_fitted_only_if_seen() {
    let job = |at: u32, crowded: f64| {
        format!(
            "arrive = {{ at = {at} }}\nwork = 20\ncrowded = {crowded}\nbatch = {{ work = 0.05 }}"
        )
    };
    // Two jobs have two threads for each CPU, which is not oversubscribed; three jobs are.
    let jobs = [("a", job(0, 0.6)), ("b", job(10, 1.0)), ("c", job(20, 0.8))];
    let truth = scenario("", &jobs);
    let (_, recording) = record(&truth, "none");
    let fit = fit(&recording, &[]).unwrap();
    for (job, weight) in fit.jobs.iter().zip([0.6, 1.0, 0.8]) {
        assert!(close(job.crowded.unwrap(), weight, 0.01), "{fit:#?}");
    }
    let found = accuracy(&recording, &[record(&fitted(&fit), "none").0]);
    assert!(found.mean_error.unwrap() < 0.01, "{found:#?}");
    let (_, two) = record(&scenario("", &jobs[..2]), "none");
    let fit = super::fit(&two, &[]).unwrap();
    assert!(fit.jobs.iter().all(|job| job.crowded == Err(Why::NeverOversubscribed)), "{fit:#?}");
}

#[test]
fn rising_loss_is_fitted_as_rising() {
    let job = format!("work = 40\nloss = {RISING}\nacceptable = 0.6\nobjective = 0.8");
    let truth = scenario("", &[("a", job)]);
    let (outcome, recording) = record(&truth, "none");
    let again = record(&fitted(&fit(&recording, &[]).unwrap()), "none").0;
    let found = accuracy(&recording, &[again]);
    for figure in [found.jobs[0].completion, found.jobs[0].acceptable, found.jobs[0].objective] {
        assert!(figure.error.unwrap().abs() < 0.02, "{found:?} {outcome:?}");
    }
}

#[test]
fn reported_target_time_overrides_the_curve() {
    let targets = "acceptable = 200.0\nobjective = 90.0\nacceptable_at = 0.2\nobjective_at = 0.7";
    let job = format!("work = 40\nloss = {EXPONENTIAL}\nnoise = 0.02\n{targets}");
    let other = format!("work = 30\nloss = {POWER}\nacceptable = 0.01");
    let (_, recording) = record(&scenario("", &[("a", job), ("b", other)]), "none");
    let fit = fit(&recording, &[]).unwrap();
    let [a, b] = fit.jobs.as_slice() else { panic!("{fit:#?}") };
    assert!(close(a.reached_at.acceptable.unwrap(), 0.2, 0.01), "{a:#?}");
    assert!(close(a.reached_at.objective.unwrap(), 0.7, 0.01), "{a:#?}");
    assert_eq!(b.reached_at.acceptable, Some(f64::INFINITY), "it ended before");
    let json = serde_json::to_value(b.reached_at).unwrap();
    assert_eq!((&json["acceptable"], &json["objective"]), (&"never".into(), &"never".into()));
    let again = record(&fitted(&fit), "none").0;
    for figure in [|job: &JobAccuracy| job.acceptable, |job: &JobAccuracy| job.objective] {
        let error = figure(&accuracy(&recording, std::slice::from_ref(&again)).jobs[0]).error;
        assert!(error.unwrap().abs() < 0.02, "{again:#?}");
    }
    assert_eq!(again.jobs[1].acceptable, None);
    let at_once =
        format!("work = 40\nloss = {EXPONENTIAL}\nacceptable = 200.0\nacceptable_at = 0.0");
    let (_, recording) = record(&scenario("", &[("a", at_once)]), "none");
    let found = super::fit(&recording, &[]).unwrap();
    assert_eq!(found.jobs[0].reached_at.acceptable, Some(0.0), "{found:#?}");
}

#[test]
fn reports_before_the_first_frame_are_fitted_if_usual() {
    let job = |early: &str| format!("work = 40\nloss = {EXPONENTIAL}\n{early}");
    let recorded = |early: &str| record(&scenario("", &[("a", job(early))]), "none").1;
    let early = |loss: f64| recorded(&format!("told = {{ loss = {loss}, largest = 700.0 }}"));
    let fitted_reports = |first: &Recording, others: &[Recording]| {
        let fit = fit(first, others).unwrap();
        assert!(
            close(fit.jobs[0].learning.as_ref().unwrap().curve.at(0.0), 540.0, 0.01),
            "{fit:?}"
        );
        fitted(&fit).draw(1)[0].early_reports
    };
    let late = recorded("");
    assert_eq!(fitted_reports(&late, &[]), None);
    assert_eq!(fitted_reports(&early(600.0), &[late.clone(), late.clone()]), None, "mostly not");
    let expected = Some(EarlyReports { loss: 600.0, largest: 700.0 });
    assert_eq!(
        fitted_reports(&early(600.0), std::slice::from_ref(&late)),
        expected,
        "as often as not"
    );
    let expected = Some(EarlyReports { loss: 610.0, largest: 700.0 });
    assert_eq!(fitted_reports(&early(600.0), &[early(620.0), early(610.0), late]), expected);
}

#[test]
fn loss_of_a_short_job_is_fitted_from_other_recordings() {
    let short = format!("work = 6\nloss = {EXPONENTIAL}");
    let (_, recording) = record(&scenario("", &[("a", short.clone())]), "none");
    let found = |others: &[Recording]| fit(&recording, others).unwrap().jobs.remove(0).learning;
    assert!(matches!(found(&[]), Err(Why::TooFewFrames { .. })), "{:?}", found(&[]));
    let curve = found(&[alone(&short, 0.5), alone(&short, 0.25)]).unwrap().curve;
    for (at, loss) in [(0.0, 540.0), (0.19, 261.9), (1.0, 102.3)] {
        assert!(close(curve.at(at), loss, 0.03), "{at}: {} {curve:?}", curve.at(at));
    }
}

#[test]
fn progress_is_taken_from_declared_remaining_work() {
    // Ten seconds, in the first half of which the same work takes half of the CPU time.
    let recording = |factor: f64| {
        let frame = |t: u32| {
            let cpu = factor * if t <= 5 { 0.4 } else { 0.8 };
            let job = format!(
                r#"{{"id":"a","loss":{loss},"usage":{{"cpu":{cpu}}},"remaining":{left},
                "targets":{{"acceptable":2.0}},"reached":{{"acceptable":{reached}}}}}"#,
                loss = 9.0 / f64::from(t + 1),
                left = 10_u32.saturating_sub(t),
                reached = t >= 5,
            );
            let jobs = if t < 11 { job.replace('\n', "") } else { String::new() };
            format!(
                r#"{{"t":{t},"nodes":[{{"name":"n","cpus":2,"usage":{{"cpu":{cpu}}}}}],"jobs":[{jobs}]}}"#
            )
        };
        Recording::parse(&(0..12).map(frame).collect::<Vec<_>>().join("\n")).unwrap()
    };
    let fit = fit(&recording(1.0), &[recording(0.9), recording(0.8)]).unwrap();
    let job = &fit.jobs[0];
    assert!(close(job.reached_at.acceptable.unwrap(), 0.5, 1e-9), "{job:#?}");
    assert!(close(job.work, 0.9 * 6.8, 1e-6), "the mean of three runs: {job:#?}");
    // A job that is ended early has not done its remaining work.
    let mut cut = recording(1.0);
    cut.frames.truncate(8);
    cut.frames.last_mut().unwrap().jobs.clear();
    let job = &super::fit(&cut, &[]).unwrap().jobs[0];
    assert!(job.ended && close(job.work, 3.6, 1e-6), "{job:#?}");
}

#[test]
fn residuals_common_to_all_runs_are_not_noise() {
    const PARTS: u32 = 20;
    let bump = |part: u32| if part.is_multiple_of(3) { 20.0 } else { -8.0 - f64::from(part % 2) };
    let bumps: Vec<String> = (0..PARTS).map(|part| format!("{:?}", bump(part))).collect();
    let job = |more: &str| {
        format!("work = 40\nbatch = {{ work = 0.02 }}\nnoise = 0.01\nloss = {EXPONENTIAL}\n{more}")
    };
    let learned = |more: &str, others: &[f64]| {
        let (_, first) = record(&scenario("", &[("a", job(more))]), "none");
        let others: Vec<Recording> = others.iter().map(|max| alone(&job(more), *max)).collect();
        fit(&first, &others).unwrap().jobs.remove(0)
    };
    let more = format!("residuals = [{}]", bumps.join(", "));
    let found = learned(&more, &[0.7, 0.45, 0.3]);
    let learning = found.learning.as_ref().unwrap();
    let residuals = Residuals::new(&learning.residuals);
    let beside = |from: f64, to: f64| learning.curve.mean(from, to) + residuals.mean(from, to);
    let curve = Curve::Exponential { start: 540.0, end: 100.0, tau: 0.19 };
    for part in 1..PARTS {
        let [from, to] = [part, part + 1].map(|at| f64::from(at) / f64::from(PARTS));
        let truth = curve.mean(from, to) + bump(part);
        assert!((beside(from, to) - truth).abs() < 4.0, "{part}: {} {truth}", beside(from, to));
    }
    assert!(learning.noise < 0.05, "{learning:?}");
    // One run alone does not separate them from noise, and noise differs from run to run.
    assert!(learned(&more, &[]).learning.unwrap().residuals.is_empty());
    assert!(learned("", &[0.7, 0.45, 0.3]).learning.unwrap().residuals.is_empty());
    let node = NodeFit {
        name: "n".into(),
        cpus: 4.0,
        memory: None,
        background: Ok(0.0),
        contention: Ok(0.0),
    };
    let again = fitted(&Fit { nodes: vec![node], jobs: vec![found.clone()], left_out: Vec::new() });
    let again = again.draw(1).remove(0);
    assert!((again.residuals.mean(0.3, 0.35) - residuals.mean(0.3, 0.35)).abs() < 1e-4);
}

#[test]
fn a_job_that_cannot_use_the_whole_node_has_a_cap() {
    let narrow = "work = 10\nparallel = 0.25\nbatch = { work = 0.05 }".to_owned();
    let wide = "work = 20\nbatch = { work = 0.05 }".to_owned();
    let truth = scenario("", &[("narrow", narrow), ("wide", wide)]);
    let fit = fit(&record(&truth, "none").1, &[]).unwrap();
    let [narrow, wide] = fit.jobs.as_slice() else { panic!("{fit:#?}") };
    assert!(close(narrow.parallel.unwrap().mean, 0.25, 0.001), "{fit:#?}");
    // It was never alone and took all that there was, so what it could use is unknown.
    assert!(wide.parallel.is_err() || close(wide.parallel.unwrap().mean, 1.0, 0.0), "{fit:#?}");
}

/// Jobs that compete get in each other's way, and leave room that both want. That happens on real
/// machines only, not in the simulator.
#[test]
fn use_alone_overrides_use_beside_another_job() {
    let frame = |t: u32| {
        let job = |id: &str, cpu: f64| format!(r#"{{"id":"{id}","usage":{{"cpu":{cpu}}}}}"#);
        let (jobs, node) = match t {
            0..=8 => (job("a", 0.85), 0.86),
            _ => (format!("{},{}", job("a", 0.45), job("b", 0.45)), 0.91),
        };
        format!(
            r#"{{"t":{t},"nodes":[{{"name":"n","cpus":2,"usage":{{"cpu":{node}}}}}],"jobs":[{jobs}]}}"#
        )
    };
    let lines: Vec<String> = (0..40).step_by(2).map(frame).collect();
    let recording = Recording::parse(&lines.join("\n")).unwrap();
    let found = fit(&recording, &[]).unwrap();
    let most = |fit: &Fit, id: &str| {
        fit.jobs.iter().find(|job| job.id.as_str() == id).unwrap().parallel.unwrap().mean
    };
    assert!(close(most(&found, "a"), 0.85, 1e-9), "{found:#?}");
    // The other was never alone there; a recording of it alone shows more.
    assert!(close(most(&found, "b"), 0.45, 1e-9), "{found:#?}");
    let alone = recording.with_job_named("a", "b").unwrap();
    let found = fit(&recording, &[alone]).unwrap();
    assert!(close(most(&found, "b"), 0.85, 0.1), "{found:#?}");
}

/// Frames every two seconds of jobs that use these shares of two CPUs while they start and while they
/// train; the last of them starts until its first report after 4 s, the others train at once.
fn starting(starts: &[f64], trains: &[f64]) -> Recording {
    let names = ["a", "b", "c"];
    let frame = |t: u32| {
        let shares = if t <= 4 { starts } else { trains };
        let job = |(name, cpu): (&&str, &f64)| {
            let late = *name == names[shares.len() - 1];
            let loss = if late && t < 4 {
                "null".to_owned()
            } else {
                (9.0 / f64::from(t + 1)).to_string()
            };
            format!(r#"{{"id":"{name}","loss":{loss},"usage":{{"cpu":{cpu}}}}}"#)
        };
        let jobs: Vec<String> = names.iter().zip(shares).map(job).collect();
        let cpu: f64 = shares.iter().sum();
        let node = format!(r#"{{"name":"n","cpus":2,"usage":{{"cpu":{cpu}}}}}"#);
        format!(r#"{{"t":{t},"nodes":[{node}],"jobs":[{}]}}"#, jobs.join(","))
    };
    let lines: Vec<String> = (0..20).step_by(2).map(frame).collect();
    Recording::parse(&lines.join("\n")).unwrap()
}

#[test]
fn use_during_start_does_not_count_as_parallel() {
    let fit = fit(&starting(&[0.3], &[0.85]), &[]).unwrap();
    assert!(close(fit.jobs[0].parallel.unwrap().mean, 0.85, 0.001), "{fit:#?}");
}

#[test]
fn use_during_start_does_not_count_as_weight() {
    let third = 1.0 / 3.0;
    let fit = fit(&starting(&[0.45, 0.45, 0.1], &[third; 3]), &[]).unwrap();
    assert!(fit.jobs.iter().all(|job| close(job.crowded.unwrap(), 1.0, 1e-6)), "{fit:#?}");
}

#[test]
fn narrow_job_is_recognised_on_a_full_node() {
    let job =
        |parallel: f64| format!("work = 20\nparallel = {parallel}\nbatch = {{ work = 0.02 }}");
    let truth = scenario("", &[("narrow", job(0.3)), ("b", job(1.0)), ("c", job(1.0))]);
    let fit = fit(&record(&truth, "none").1, &[]).unwrap();
    let narrow = fit.jobs.iter().find(|job| job.id.as_str() == "narrow").unwrap();
    assert!(close(narrow.parallel.unwrap().mean, 0.3, 0.001), "{fit:#?}");
}

#[test]
fn unfitted_parameters_carry_their_reason() {
    let job = "work = 9".to_owned();
    let mut truth = scenario("", &[("a", job.clone()), ("b", job)]);
    truth.until = 12.0;
    let (_, recording) = record(&truth, "none");
    let fit = fit(&recording, &[]).unwrap();
    let a = &fit.jobs[0];
    assert!(!a.ended, "{a:?}");
    assert_eq!(a.learning, Err(Why::NoLoss));
    assert!(matches!(a.parallel, Err(Why::NoRoom { .. })), "{a:?}");
    assert_eq!(a.batch.unwrap().throttling, Err(Why::NoLimit));
    assert_eq!(fit.nodes[0].contention, Err(Why::NoNeighbours));
    let text = fit.scenario(&Heading::default());
    assert!(text.contains("# It did not end while it was recorded"), "{text}");
    // Its work is what it did until then, so that it competes with the others in a simulation.
    assert!(close(a.work, 6.0, 0.01), "{a:?}");
}

#[test]
fn invalid_recording_is_rejected_with_its_line() {
    let good = r#"{"t":1,"jobs":[{"id":"a"}]}"#;
    for (text, part) in [
        (String::new(), "it has no frames"),
        ("\n \n".to_owned(), "it has no frames"),
        (r#"{"t":1,"jobs":[]}"#.to_owned(), "none of its frames has a job"),
        (format!("{good}\n{}", &good[..12]), "line 2"),
        (format!("{good}\n\n{{\"t\":0}}"), "line 3"),
        (r#"{"t":1,"unix":2,"node":{"cpus":2},"jobs":[]}"#.to_owned(), "--samples"),
        (r#"{"t":1,"tasks":[]}"#.to_owned(), "distributed"),
        (r#"{"t":1,"policy":"none","jobs":{}}"#.to_owned(), "replay"),
    ] {
        let error = Recording::parse(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let bare = Recording::parse(good).unwrap();
    assert_eq!(fit(&bare, &[]), Err(FitError::NoCpus));
    let once = r#"{"t":1,"nodes":[{"name":"n","cpus":2}],"jobs":[{"id":"a"}]}"#;
    assert_eq!(fit(&Recording::parse(once).unwrap(), &[]), Err(FitError::NoUse));
}

/// A job of a random scenario.
fn job() -> impl Strategy<Value = String> {
    let curve = prop_oneof![Just(EXPONENTIAL), Just(POWER)];
    // Near an equal share of the node, it is undecidable whether a job wanted more.
    let parallel = prop_oneof![6 => Just(1.0), 1 => 0.15..0.22_f64, 1 => 0.52..0.9_f64];
    (0.0..30.0_f64, 15.0..60.0_f64, 0.02..0.3_f64, curve, 0.0..0.05_f64, parallel).prop_map(
        |(arrive, work, batch, curve, noise, parallel)| {
            format!(
                "arrive = {{ at = {arrive} }}\nwork = {work}\nparallel = {parallel}\n\
                 batch = {{ work = {batch} }}\nloss = {curve}\nnoise = {noise}"
            )
        },
    )
}

proptest! {
    // Fixed random mixes: in some others, neighbours hide what a job could use or how jobs slow
    // each other down, and the fit is worse.
    #![proptest_config(ProptestConfig {
        cases: 12,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn refitted_simulation_takes_as_long(
        jobs in (job(), job(), job()), contention in 0.0..0.2_f64, background in 0.0..0.2_f64,
    ) {
        let jobs = [("a", jobs.0), ("b", jobs.1), ("c", jobs.2)];
        let node = format!("contention = {contention}\nbackground = {background}");
        let truth = scenario(&node, &jobs);
        let again = fitted(&fit(&record(&truth, "none").1, &[]).unwrap());
        for (policy, allowed) in [("none", 0.02), ("flowcon", 0.08)] {
            let (_, measured) = record(&truth, policy);
            let found = accuracy(&measured, &[record(&again, policy).0]);
            prop_assert_eq!(found.jobs.len(), 3);
            for job in &found.jobs {
                let error = job.completion.error.unwrap().abs();
                prop_assert!(error < allowed, "{} {:#?}", policy, found);
            }
        }
    }

    #[test]
    fn form_and_noise_of_a_curve_are_recovered(
        noise in 0.0..0.1_f64, power in any::<bool>(),
    ) {
        let curve = if power { POWER } else { EXPONENTIAL };
        let job = format!("work = 80\nbatch = {{ work = 0.05 }}\nloss = {curve}\nnoise = {noise}");
        let fit = fit(&record(&scenario("", &[("a", job)]), "none").1, &[]).unwrap();
        let learning = fit.jobs[0].learning.clone().unwrap();
        prop_assert_eq!(matches!(learning.curve, Curve::Power { .. }), power, "{:?}", learning);
        prop_assert!((learning.noise - noise).abs() < 0.01 + 0.5 * noise, "{:?}", learning);
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![6 => 0.01..1.0_f64, 1 => Just(0.0), 1 => -2.0..2.0_f64, 1 => prop::num::f64::NORMAL]
}

fn frame() -> impl Strategy<Value = String> {
    let job =
        (prop::sample::select(vec!["a", "b", "c\\u007f\\n"]), prop::array::uniform8(number()));
    let job = job.prop_map(|(id, [loss, latency, cpu, applied, min, max, target, weight])| {
        let node = if id == "a" { "b" } else { "" };
        format!(
            r#""{id}": {{"id":"{id}","node":"{node}","loss":{loss:e},"batch_latency":{latency:e},"remaining":{max:e},
            "usage":{{"cpu":{cpu:e}}},
            "limit":{{"applied":{applied:e},"min":{min:e},"max":{max:e}}},"weight":{weight:e},
            "targets":{{"acceptable":{target:e},"objective":{loss:e},"batch_latency":{cpu:e}}}}}"#
        )
    });
    let node = (
        number(),
        number(),
        prop::sample::select(vec!["", r#","cpus":2,"usage":{"cpu":0.5}},{"name":"b""#]),
    );
    (prop::collection::vec(job, 1..6), node).prop_map(|(mut jobs, (cpus, cpu, second))| {
        jobs.sort();
        jobs.dedup_by_key(|job| job.chars().take(4).collect::<String>());
        let jobs: Vec<&str> = jobs.iter().filter_map(|job| Some(job.split_once(": ")?.1)).collect();
        format!(
            r#""nodes":[{{"name":""{second},"cpus":{cpus:e},"usage":{{"cpu":{cpu:e}}}}}],"jobs":[{}]}}"#,
            jobs.join(",")
        )
        .replace('\n', "")
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(.|\n)*") {
        drop(Recording::parse(&text));
    }

    #[test]
    fn any_frames_fit_to_a_scenario_or_an_error(
        frames in prop::collection::vec((frame(), number()), 1..30),
    ) {
        let mut t = 0.0;
        let mut lines = Vec::new();
        for (frame, seconds) in frames {
            t += seconds.abs();
            lines.push(format!("{{\"t\":{t:e},{frame}"));
        }
        if let Ok(recording) = Recording::parse(&lines.join("\n"))
            && let Ok(fit) = fit(&recording, std::slice::from_ref(&recording))
        {
            let heading = Heading { policies: vec!["none".into()], ..Heading::default() };
            // Frames may hold numbers beyond those of a scenario.
            if let Err(error) = Scenario::parse(&fit.scenario(&heading)) {
                prop_assert!(error.to_string().contains("must be at most 1000000000"), "{error}");
            }
        }
    }
}
