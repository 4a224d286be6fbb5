//! The figures that papers print, beside those measured on this machine.

use std::collections::BTreeMap;

use paceline_policy::Variant;
use paceline_policy::limiter::Enforcement;
use paceline_sim::Outcome;
use paceline_sim::bounds::Bounds;
use paceline_sim::claims::{Claim, Verdict, published};
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::Interval;
use paceline_sim::scenario;

use super::outcome::{About, BASELINE, Compared, Measured, Observed, mean};
use super::predict::{Forecast, Predictor};
use super::schedule::Arm;

/// The schedules that repeat a paper's run, and the scenarios that its claims belong to.
const LIKE: &[(&str, &str)] = &[
    ("R-FC3", "FC-3"),
    ("R-FC10", "FC-10"),
    ("R-TR5", "TR-5"),
    ("R-DQ10", "DQ-var"),
    ("R-SP", "SP-fix"),
];

/// A policy that only places jobs. A bench runs it as `none`, since the schedule places the jobs.
const PLACED: &str = "spread";

/// What claims are compared with.
#[derive(Debug)]
pub(crate) struct Material<'a> {
    pub(crate) about: &'a About,
    pub(crate) arms: &'a [Arm],
    /// Of each arm.
    pub(crate) runs: &'a [Vec<Measured<'a>>],
    pub(crate) forecast: &'a Forecast,
    pub(crate) predictor: Option<&'a Predictor>,
}

/// All claims of the schedule's paper; empty if the schedule repeats no paper's run.
pub(crate) fn compare(material: &Material<'_>) -> Vec<Compared> {
    let name = &material.about.name;
    let like = LIKE.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let Some((_, scenario)) = like else { return Vec::new() };
    let claims = published().unwrap_or_default();
    let own = claims
        .into_iter()
        .filter(|claim| claim.scenario == *scenario && claim.applies_to(material.interval(claim)));
    own.map(|claim| material.check(claim)).collect()
}

impl<'a> Material<'a> {
    fn check(&self, claim: Claim) -> Compared {
        let arm = self.arm(&claim);
        let (mut each, mut bounds) = (Vec::new(), Vec::new());
        for repeat in self.repeats(arm, Observed::counts) {
            let scale = self.about.scale;
            let bound = self.predictor.and_then(|predictor| predictor.bounds_of(repeat, scale));
            let trajectory = |place: usize| {
                let runs = self.runs.get(place)?.iter();
                let mut own = runs.filter(|run| run.observed.recorded.run.repeat == repeat);
                own.next().map(|run| run.trajectory.outcome.clone())
            };
            let checked = claim.check(&self.comparison((&claim, arm), trajectory, bound.as_ref()));
            each.extend(checked.published);
            bounds.extend(checked.bound);
        }
        let measured = Interval::from_values(&each);
        let own = arm.and_then(|place| self.forecast.trajectories.get(place));
        let simulated = own.into_iter().flat_map(BTreeMap::keys).filter_map(|run| {
            let trajectory = |place: usize| {
                Some(self.forecast.trajectories.get(place)?.get(run)?.outcome.clone())
            };
            claim.check(&self.comparison((&claim, arm), trajectory, None)).published
        });
        let simulated = mean(&simulated.collect::<Vec<f64>>());
        let bound = mean(&bounds);
        let verdict = claim.verdict(measured.map(|it| it.mean), bound);
        let not_judged = self.not_judged(arm);
        let reason = match &not_judged {
            Some(why) => {
                let why = format!("Not judged: {why}.");
                flaw(&claim).into_iter().chain([why]).collect::<Vec<String>>().join(" ")
            }
            None => reason(&claim, measured, simulated, verdict),
        };
        let arm = arm.and_then(|place| self.arms.get(place)).map(|arm| arm.name.clone());
        Compared { claim, arm, measured, simulated, bound, verdict, not_judged, reason }
    }

    /// The arm that is closest to the paper's run: as printed, with hard limits.
    fn arm(&self, claim: &Claim) -> Option<usize> {
        let policy = if claim.policy == PLACED { BASELINE } else { claim.policy.as_str() };
        let own = self.arms.iter().enumerate().filter(|(_, arm)| arm.policy == policy);
        own.min_by_key(|(_, arm)| {
            (arm.variant != Variant::Published, arm.enforcement != Enforcement::Quota)
        })
        .map(|(place, _)| place)
    }

    /// How often that arm decides, in the paper's seconds.
    fn interval(&self, claim: &Claim) -> Option<f64> {
        let arm = self.arms.get(self.arm(claim)?)?;
        Some(arm.params.get("interval")? * self.about.scale)
    }

    fn baseline(&self) -> Option<usize> {
        self.arms.iter().position(|arm| arm.policy == BASELINE)
    }

    fn runs_of(&self, place: Option<usize>) -> impl Iterator<Item = &'a Observed<'a>> {
        let runs = place.and_then(|place| self.runs.get(place)).into_iter().flatten();
        runs.map(|run| run.observed)
    }

    /// The repeats in which `asked` accepts both the arm's run and that of `none`.
    fn repeats(&self, arm: Option<usize>, asked: fn(&Observed<'a>) -> bool) -> Vec<u32> {
        let own = |place: Option<usize>| -> Vec<u32> {
            let runs = self.runs_of(place).filter(|run| asked(run));
            runs.map(|run| run.recorded.run.repeat).collect()
        };
        let other = own(self.baseline());
        own(arm).into_iter().filter(|repeat| other.contains(repeat)).collect()
    }

    /// Why the claim cannot be judged, if other work disturbed the runs of the arm or of `none`.
    fn not_judged(&self, arm: Option<usize>) -> Option<String> {
        let every = self.repeats(arm, |_| true);
        if every.is_empty() || !self.repeats(arm, Observed::counts).is_empty() {
            return None;
        }
        let (own, none) = (self.arms.get(arm?)?, self.arms.get(self.baseline()?)?);
        let is_disturbed = |place: Option<usize>| !self.runs_of(place).any(Observed::counts);
        Some(if is_disturbed(arm) {
            format!("every run of {} was disturbed", own.name)
        } else if is_disturbed(self.baseline()) {
            format!("every run of {} was disturbed", none.name)
        } else {
            format!("in each repeat the run of {} or {} was disturbed", own.name, none.name)
        })
    }

    /// One run of the arm and one of `none`, in the paper's times, as claims expect them.
    fn comparison(
        &self,
        (claim, arm): (&Claim, Option<usize>),
        trajectory: impl Fn(usize) -> Option<Outcome>,
        bounds: Option<&Bounds>,
    ) -> Comparison {
        let mut results = Vec::new();
        for place in [self.baseline(), arm].into_iter().flatten() {
            if let (Some(facts), Some(outcome)) = (self.arms.get(place), trajectory(place)) {
                // `none` under the name that the claim uses for it.
                let arm = if facts.policy == BASELINE {
                    let policy = if Some(place) == arm { &claim.policy } else { &claim.against };
                    scenario::Arm { policy: policy.clone(), variant: Variant::Resolved }
                } else {
                    scenario::Arm { policy: facts.policy.clone(), variant: facts.variant }
                };
                results.push(Results { arm, outcomes: vec![scaled(outcome, self.about.scale)] });
            }
        }
        Comparison { seeds: vec![1], results, bounds: vec![bounds.cloned().unwrap_or_default()] }
    }
}

/// The same run with all times multiplied by `scale`.
fn scaled(mut outcome: Outcome, scale: f64) -> Outcome {
    for job in &mut outcome.jobs {
        let times =
            [&mut job.finished, &mut job.acceptable, &mut job.objective, &mut job.batch_latency];
        for time in times.into_iter().chain([&mut job.targets.batch_latency]) {
            *time = time.map(|time| time * scale);
        }
        job.arrived *= scale;
        job.loss_area *= scale;
    }
    outcome
}

/// What is wrong with the claim itself, on one line.
fn flaw(claim: &Claim) -> Option<String> {
    let flaw = claim.flaw.as_ref()?;
    Some(flaw.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Why the measured figure differs from the printed one, in sentences.
fn reason(
    claim: &Claim,
    measured: Option<Interval>,
    simulated: Option<f64>,
    verdict: Verdict,
) -> String {
    let mut sentences: Vec<String> = flaw(claim).into_iter().collect();
    let Some(measured) = measured else {
        sentences.push("No undisturbed repeat has this figure.".to_owned());
        return sentences.join(" ");
    };
    if verdict == Verdict::Reproduced {
        return sentences.join(" ");
    }
    let apart = (measured.mean - claim.value).abs();
    match measured.half {
        Some(half) if half >= apart => sentences.push(
            "The repeats vary so much that the printed figure lies within their interval."
                .to_owned(),
        ),
        Some(_) => {}
        None => sentences.push("There is only one repeat, so its variation is unknown.".to_owned()),
    }
    if let Some(simulated) = simulated {
        let near = (simulated - measured.mean).abs() < apart / 2.0;
        sentences.push(if near {
            "The simulator, fitted without this arm, agrees with the measurement: the figure follows \
             from the jobs, the machine and the algorithm, not from chance."
                .to_owned()
        } else if (simulated - claim.value).abs() < apart / 2.0 {
            "The simulator agrees with the printed figure: the difference comes from something of the \
             machine that the model lacks."
                .to_owned()
        } else {
            "The simulator agrees with neither: the model lacks something of this run.".to_owned()
        });
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests;
