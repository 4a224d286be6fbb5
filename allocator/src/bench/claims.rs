//! What papers print of their runs, beside what came of them on this machine.

use std::collections::BTreeMap;

use paceline_policy::Variant;
use paceline_policy::limiter::Enforcement;
use paceline_sim::Outcome;
use paceline_sim::bounds::Bounds;
use paceline_sim::claims::{Claim, Verdict, published};
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::Interval;
use paceline_sim::scenario::Arm;
use serde::{Deserialize, Serialize};

use super::outcome::{About, ArmFacts, BASELINE, Measured, Observed, mean};
use super::predict::{Forecast, Predictor};

/// The schedules that are like the papers' runs, and the scenarios that the claims are of.
const LIKE: &[(&str, &str)] = &[
    ("R-FC3", "FC-3"),
    ("R-FC10", "FC-10"),
    ("R-TR5", "TR-5"),
    ("R-DQ10", "DQ-var"),
    ("R-SP", "SP-fix"),
];

/// What only places jobs is `none` here, where the schedule places them.
const PLACED: &str = "spread";

/// One printed figure beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) claim: Claim,
    /// The arm that is held against it.
    pub(crate) arm: Option<String>,
    /// Over the repeats, in the paper's times.
    pub(crate) measured: Option<Interval>,
    /// What the simulator says of the same arm on this machine.
    pub(crate) simulated: Option<f64>,
    /// The best that can be.
    pub(crate) bound: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Why the verdict says nothing, where runs were disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_judged: Option<String>,
    /// Why it is another figure, where it is.
    pub(crate) reason: String,
}

/// What claims are held against.
#[derive(Debug)]
pub(crate) struct Material<'a> {
    pub(crate) about: &'a About,
    pub(crate) arms: &'a [ArmFacts],
    /// Of each arm.
    pub(crate) runs: &'a [Vec<Measured<'a>>],
    pub(crate) forecast: &'a Forecast,
    pub(crate) predictor: Option<&'a Predictor>,
}

/// All claims of the schedule's paper; none if it is like no paper's run.
pub(crate) fn compare(material: &Material<'_>) -> Vec<Compared> {
    let name = &material.about.name;
    let like = LIKE.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let Some((_, scenario)) = like else { return Vec::new() };
    let claims = published().unwrap_or_default();
    let own = claims
        .into_iter()
        .filter(|claim| claim.scenario == *scenario && claim.is_at(material.interval(claim)));
    own.map(|claim| material.check(claim)).collect()
}

impl<'a> Material<'a> {
    fn check(&self, claim: Claim) -> Compared {
        let arm = self.arm(&claim);
        let (mut each, mut bounds) = (Vec::new(), Vec::new());
        for repeat in self.repeats(arm, Observed::counts) {
            let scale = self.about.scale;
            let bound = self.predictor.and_then(|predictor| predictor.bounds_of(repeat, scale));
            let course = |place: usize| {
                let runs = self.runs.get(place)?.iter();
                let mut own = runs.filter(|run| run.observed.recorded.run.repeat == repeat);
                own.next().map(|run| run.course.outcome.clone())
            };
            let checked = claim.check(&self.comparison((&claim, arm), course, bound.as_ref()));
            each.extend(checked.published);
            bounds.extend(checked.bound);
        }
        let measured = Interval::of(&each);
        let own = arm.and_then(|place| self.forecast.courses.get(place));
        let simulated = own.into_iter().flat_map(BTreeMap::keys).filter_map(|run| {
            let course =
                |place: usize| Some(self.forecast.courses.get(place)?.get(run)?.outcome.clone());
            claim.check(&self.comparison((&claim, arm), course, None)).published
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

    /// The arm that is nearest to what the paper did: as printed, with hard limits.
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

    /// The repeats of both the arm and `none` of which both runs are `asked` for.
    fn repeats(&self, arm: Option<usize>, asked: fn(&Observed<'a>) -> bool) -> Vec<u32> {
        let own = |place: Option<usize>| -> Vec<u32> {
            let runs = self.runs_of(place).filter(|run| asked(run));
            runs.map(|run| run.recorded.run.repeat).collect()
        };
        let other = own(self.baseline());
        own(arm).into_iter().filter(|repeat| other.contains(repeat)).collect()
    }

    /// Why the arm's runs and those of `none` say nothing, if it is since other work disturbed them.
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

    /// One run of the arm and one of `none`, in the paper's times, as claims look for their figures.
    fn comparison(
        &self,
        (claim, arm): (&Claim, Option<usize>),
        course: impl Fn(usize) -> Option<Outcome>,
        bounds: Option<&Bounds>,
    ) -> Comparison {
        let mut results = Vec::new();
        for place in [self.baseline(), arm].into_iter().flatten() {
            if let (Some(facts), Some(outcome)) = (self.arms.get(place), course(place)) {
                // The claim's own name of what nothing is decided by.
                let arm = if facts.policy == BASELINE {
                    let policy = if Some(place) == arm { &claim.policy } else { &claim.against };
                    Arm { policy: policy.clone(), variant: Variant::Resolved }
                } else {
                    Arm { policy: facts.policy.clone(), variant: facts.variant }
                };
                results.push(Results { arm, outcomes: vec![scaled(outcome, self.about.scale)] });
            }
        }
        Comparison { seeds: vec![1], results, bounds: vec![bounds.cloned().unwrap_or_default()] }
    }
}

/// The same run where all times are `scale` times as long.
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

/// What is wrong with the claim itself, in a line.
fn flaw(claim: &Claim) -> Option<String> {
    let flaw = claim.flaw.as_ref()?;
    Some(flaw.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Why what was measured is not what was printed, in sentences.
fn reason(
    claim: &Claim,
    measured: Option<Interval>,
    simulated: Option<f64>,
    verdict: Verdict,
) -> String {
    let mut sentences: Vec<String> = flaw(claim).into_iter().collect();
    let Some(measured) = measured else {
        sentences.push("No repeat that counts has this figure.".to_owned());
        return sentences.join(" ");
    };
    if verdict == Verdict::Reproduced {
        return sentences.join(" ");
    }
    let apart = (measured.mean - claim.value).abs();
    match measured.half {
        Some(half) if half >= apart => sentences.push(
            "The repeats differ so much that the printed figure lies within their interval."
                .to_owned(),
        ),
        Some(_) => {}
        None => sentences.push("There is one repeat: how much it varies is not known.".to_owned()),
    }
    if let Some(simulated) = simulated {
        let near = (simulated - measured.mean).abs() < apart / 2.0;
        sentences.push(if near {
            "The simulator, fitted without this arm, says what was measured: so it follows from the \
             jobs, the machine and the algorithm, not from chance."
                .to_owned()
        } else if (simulated - claim.value).abs() < apart / 2.0 {
            "The simulator says what was printed: so what differs is something of the machine that \
             the model does not have."
                .to_owned()
        } else {
            "The simulator says neither: the model lacks something of this run.".to_owned()
        });
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests;
