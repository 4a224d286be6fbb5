//! From the runs of a bench to its findings.
//!
//! Each step makes a value from those before it: observed runs, references, measurements, predictions,
//! comparisons, explanations.

use std::collections::BTreeMap;

use super::calibrate::SoloRun;
use super::claims;
use super::outcome::{
    About, ArmFindings, BASELINE, Compared, Findings, Interference, JobFacts, Measured, ORACLE,
    Observed, Promise, ReferenceTimes, RunFindings, Trajectory, interference, mean,
};
use super::predict::{Forecast, Predictor, SIMULATIONS};
use super::regression;
use super::schedule::Arm;

/// The oracle runs the job with the least work left: no order has a smaller mean completion time.
const BEST_BY: &str = "completion_mean";

/// The results of a bench.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Analysis {
    pub(crate) findings: Findings,
    /// The fitted scenario as TOML, if there is one.
    pub(crate) scenario: Option<String>,
}

/// Analyses the runs of `arms`. `calibration` holds recordings of each job alone.
pub(crate) fn analyse<'a>(
    about: About,
    arms: &'a [Arm],
    observed: &'a [Observed<'a>],
    calibration: &[SoloRun],
) -> Analysis {
    analyse_by(SIMULATIONS, about, arms, observed, calibration)
}

/// The same, with at least `simulations` simulated runs of each arm.
pub(crate) fn analyse_by<'a>(
    simulations: u64,
    about: About,
    arms: &'a [Arm],
    observed: &'a [Observed<'a>],
    calibration: &[SoloRun],
) -> Analysis {
    let runs = Runs::observe(arms, observed);
    let reference = Reference::new(simulations, &about, &runs, calibration);
    let measured = Measurements::new(&about.jobs, &runs, &reference.times);
    let forecast = reference.predict(&measured.arms);
    let comparison = Comparison::new(&about, &measured, &forecast, &reference);
    let explained = comparison.explain(&measured);
    let scenario = reference.predictor.ok().map(|predictor| predictor.text);
    let Comparison { claims, interference, .. } = comparison;
    let prediction = forecast.prediction;
    Analysis {
        findings: Findings { about, arms: explained, interference, prediction, claims },
        scenario,
    }
}

/// The observed runs, by arm.
struct Runs<'a> {
    arms: &'a [Arm],
    /// All of them, warm-ups included.
    all: &'a [Observed<'a>],
    /// Of each arm, in the order of the repeats.
    of_arms: Vec<Vec<&'a Observed<'a>>>,
}

impl<'a> Runs<'a> {
    fn observe(arms: &'a [Arm], all: &'a [Observed<'a>]) -> Self {
        let of_arm = |arm: &Arm| -> Vec<&'a Observed<'a>> {
            let own = |run: &&Observed<'_>| {
                run.recorded.run.arm == arm.name && run.recorded.run.repeat > 0
            };
            let mut runs: Vec<&'a Observed<'a>> = all.iter().filter(own).collect();
            runs.sort_by_key(|run| run.recorded.run.repeat);
            runs
        };
        Self { arms, all, of_arms: arms.iter().map(of_arm).collect() }
    }

    /// The runs of the baseline, `none`.
    fn none(&self) -> &[&'a Observed<'a>] {
        let place = self.arms.iter().position(|arm| arm.policy == BASELINE);
        place.and_then(|place| self.of_arms.get(place)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// What runs are measured against, and the simulator fitted to the baseline.
struct Reference {
    times: ReferenceTimes,
    /// Or the reason why nothing could be fitted.
    predictor: Result<Predictor, String>,
}

impl Reference {
    fn new(simulations: u64, about: &About, runs: &Runs<'_>, calibration: &[SoloRun]) -> Self {
        let times = ReferenceTimes::from_runs(about, runs.all);
        let predictor = Predictor::fit(&about.jobs, &times, runs.all, runs.none(), calibration)
            .map(|predictor| predictor.simulating(simulations));
        let times = match &predictor {
            Ok(predictor) => predictor.complete(times),
            Err(_) => times,
        };
        Self { times, predictor }
    }

    fn predict(&self, arms: &[ArmFindings]) -> Forecast {
        match &self.predictor {
            Ok(predictor) => Forecast::new(predictor, arms, &self.times),
            Err(why) => Forecast::none(why.clone()),
        }
    }
}

/// What was measured.
struct Measurements<'a> {
    facts: &'a [Arm],
    /// Of each arm.
    runs: Vec<Vec<Measured<'a>>>,
    /// Of the baseline, `none`.
    none: Vec<RunFindings>,
    arms: Vec<ArmFindings>,
}

impl<'a> Measurements<'a> {
    fn new(jobs: &[JobFacts], observed: &Runs<'a>, times: &ReferenceTimes) -> Self {
        let measured = |run: &&'a Observed<'a>| Measured {
            observed: run,
            trajectory: Trajectory::measured(jobs, run, times),
        };
        let runs: Vec<Vec<Measured<'a>>> =
            observed.of_arms.iter().map(|runs| runs.iter().map(measured).collect()).collect();
        let findings = |runs: &Vec<Measured<'_>>| -> Vec<RunFindings> {
            runs.iter().map(RunFindings::new).collect()
        };
        let facts = observed.arms;
        let baseline = facts.iter().zip(&runs).find(|(arm, _)| arm.policy == BASELINE);
        let none = baseline.map(|(_, runs)| findings(runs)).unwrap_or_default();
        let arm = |(arm, runs): (&Arm, &Vec<Measured<'_>>)| {
            // The baseline is not comparison with itself.
            let baseline = if arm.policy == BASELINE { &[] } else { none.as_slice() };
            ArmFindings::new(arm, findings(runs), baseline, jobs)
        };
        let arms = facts.iter().zip(&runs).map(arm).collect();
        Self { facts, runs, none, arms }
    }
}

/// The measurements beside the predictions, the oracle's figures and the papers' claims.
struct Comparison {
    arms: Vec<ArmFindings>,
    claims: Vec<Compared>,
    interference: Option<Interference>,
}

impl Comparison {
    fn new(
        about: &About,
        measured: &Measurements<'_>,
        forecast: &Forecast,
        reference: &Reference,
    ) -> Self {
        let claims = claims::compare(&claims::Material {
            about,
            arms: measured.facts,
            runs: &measured.runs,
            forecast,
            predictor: reference.predictor.as_ref().ok(),
        });
        let none = measured.facts.iter().zip(&measured.runs);
        let none = none.filter(|(arm, _)| arm.policy == BASELINE).flat_map(|(_, runs)| runs);
        let none: Vec<&Observed<'_>> = none.map(|run| run.observed).collect();
        let first = none.iter().find(|run| run.counts()).or(none.first());
        let interference = first.and_then(|run| interference(&about.jobs, run.recorded));
        let arms = over_oracle(forecast.add_to(measured.arms.clone()));
        Self { arms, claims, interference }
    }

    /// Adds to each arm why it is worse than `none`, and whether it kept its promise.
    fn explain(&self, measured: &Measurements<'_>) -> Vec<ArmFindings> {
        let explained = |(arm, runs): (&ArmFindings, &Vec<Measured<'_>>)| ArmFindings {
            regression: regression::explain(arm, runs, &self.claims),
            promise: Promise::check(arm, &measured.none),
            ..arm.clone()
        };
        self.arms.iter().zip(&measured.runs).map(explained).collect()
    }
}

/// Sets each arm's ratio to the oracle, for the figure by which the oracle is best.
fn over_oracle(mut arms: Vec<ArmFindings>) -> Vec<ArmFindings> {
    let oracle = arms.iter().find(|arm| arm.facts.policy == ORACLE);
    let Some(best) = oracle.map(|oracle| oracle.values(BEST_BY)) else { return arms };
    for arm in &mut arms {
        let over = ratio(&arm.values(BEST_BY), &best);
        if let Some(Some(figure)) = arm.figures.get_mut(BEST_BY) {
            figure.over_oracle = over;
        }
    }
    arms
}

/// The ratio of two means, over the repeats that have both values: repeats may differ in their arrivals.
fn ratio(own: &BTreeMap<u32, f64>, best: &BTreeMap<u32, f64>) -> Option<f64> {
    let pairs = own.iter().filter_map(|(repeat, own)| Some((*own, *best.get(repeat)?)));
    let (own, best): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let best = mean(&best).filter(|best| *best > 0.0)?;
    Some(mean(&own)? / best)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::example::{bare, disturb, example};
    use super::super::record::Recorded;
    use super::*;

    #[test]
    fn ratio_to_the_oracle_is_over_common_repeats() {
        let example = || example(&["flowcon", "oracle"], &["a"]);
        let over = |runs: &[Recorded]| {
            let (about, facts, _) = example();
            let observed: Vec<Observed<'_>> = runs.iter().map(bare).collect();
            let arms = analyse(about, &facts, &observed, &[]).findings.arms;
            [0, 1].map(|arm| arms[arm].figure(BEST_BY).and_then(|figure| figure.over_oracle))
        };
        let (.., mut runs) = example();
        for (run, ended) in runs.iter_mut().zip([30.0, 28.0, 60.0, 56.0]) {
            run.run.jobs[0].ended = ended;
        }
        disturb(&mut runs, "oracle", Some(2));
        let [flowcon, oracle] = over(&runs);
        let flowcon = flowcon.unwrap();
        assert!((flowcon - 30.0 / 28.0).abs() < 1e-9, "{flowcon}");
        assert_eq!(oracle, Some(1.0));
        disturb(&mut runs, "flowcon", Some(1));
        assert_eq!(over(&runs)[0], None, "no repeat is undisturbed under both");
    }
}
