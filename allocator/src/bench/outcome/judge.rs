//! From the runs of a bench to its findings.

use super::super::calibrate::Solo;
use super::super::claims;
use super::super::predict::{Forecast, Predictor, SIMULATIONS};
use super::super::promise::Promise;
use super::super::story;
use super::arm::{ArmFindings, RunFindings};
use super::together::together;
use super::{About, ArmFacts, BASELINE, Course, Findings, Ground, ORACLE, Observed};

/// The oracle runs the job with the least work left: no order has a smaller mean completion time.
const BEST_BY: &str = "completion_mean";

/// What came of a bench.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) findings: Findings,
    /// The scenario that was fitted, as TOML, if one was.
    pub(crate) scenario: Option<String>,
}

/// A run and its course.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) observed: &'a Observed<'a>,
    pub(crate) course: Course,
}

/// Judges the runs of `arms`; `calibration` is of the jobs alone.
pub(crate) fn judge<'a>(
    about: About,
    arms: &[ArmFacts],
    observed: &'a [Observed<'a>],
    calibration: &[Solo],
) -> Judged {
    judge_by(SIMULATIONS, about, arms, observed, calibration)
}

/// The same, with so many simulations of each arm.
pub(crate) fn judge_by<'a>(
    simulations: u64,
    about: About,
    arms: &[ArmFacts],
    observed: &'a [Observed<'a>],
    calibration: &[Solo],
) -> Judged {
    let jobs = &about.jobs;
    let runs_of = |arm: &ArmFacts| -> Vec<&'a Observed<'a>> {
        let own =
            |run: &&Observed<'_>| run.recorded.run.arm == arm.name && run.recorded.run.repeat > 0;
        let mut runs: Vec<&'a Observed<'a>> = observed.iter().filter(own).collect();
        runs.sort_by_key(|run| run.recorded.run.repeat);
        runs
    };
    let baseline = arms.iter().position(|arm| arm.policy == BASELINE);
    let none = baseline.and_then(|place| arms.get(place)).map(&runs_of).unwrap_or_default();
    let mut ground = Ground::of(&about, observed);
    let predictor = Predictor::fit(jobs, &ground, observed, &none, calibration)
        .map(|predictor| predictor.simulating(simulations));
    if let Ok(predictor) = &predictor {
        predictor.complete(&mut ground);
    }
    let measured = |run: &'a Observed<'a>| Measured {
        observed: run,
        course: Course::measured(jobs, run, &ground),
    };
    let runs: Vec<Vec<Measured<'_>>> =
        arms.iter().map(|arm| runs_of(arm).into_iter().map(measured).collect()).collect();
    let findings = |runs: &Vec<Measured<'_>>| -> Vec<RunFindings> {
        runs.iter().map(RunFindings::of).collect()
    };
    let without = baseline.and_then(|place| runs.get(place)).map(findings).unwrap_or_default();
    let mut found: Vec<ArmFindings> = arms
        .iter()
        .zip(&runs)
        .map(|(arm, runs)| {
            // What the others are compared with is not compared with itself.
            let baseline = if arm.policy == BASELINE { &[] } else { without.as_slice() };
            ArmFindings::of(arm, findings(runs), baseline, jobs)
        })
        .collect();
    let forecast = match &predictor {
        Ok(predictor) => Forecast::of(predictor, &found, &ground),
        Err(why) => Forecast::none(why.clone()),
    };
    forecast.put_beside(&mut found);
    over_oracle(&mut found);
    let claims = claims::compare(&claims::Material {
        about: &about,
        arms,
        runs: &runs,
        forecast: &forecast,
        predictor: predictor.as_ref().ok(),
    });
    for (arm, runs) in found.iter_mut().zip(&runs) {
        arm.story = story::tell(arm, runs, &claims);
        arm.promise = Promise::of(arm, &without);
    }
    let first = none.iter().find(|run| run.counts()).or(none.first());
    let together = first.and_then(|run| together(jobs, run.recorded));
    let scenario = predictor.ok().map(|predictor| predictor.text);
    let prediction = forecast.prediction;
    Judged { findings: Findings { about, arms: found, together, prediction, claims }, scenario }
}

/// Holds what the oracle is the best by against it.
fn over_oracle(arms: &mut [ArmFindings]) {
    let oracle = arms.iter().find(|arm| arm.facts.policy == ORACLE);
    let best = oracle.and_then(|oracle| Some(oracle.figure(BEST_BY)?.measured.mean));
    let Some(best) = best.filter(|best| *best > 0.0) else { return };
    for arm in arms {
        if let Some(Some(figure)) = arm.figures.get_mut(BEST_BY) {
            figure.over_oracle = Some(figure.measured.mean / best);
        }
    }
}
