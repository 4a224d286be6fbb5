//! Compares the results that papers print for their policies with our results and with the bounds.

use paceline_policy::Variant;
use paceline_policy::unit::count;
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, Results};
use crate::gangs::Exchange;
use crate::metrics::{Better, Metric};
use crate::outcome::JobOutcome;
use crate::stats::mean;

/// A figure within this relative distance of the printed one reproduces it.
const NEAR: f64 = 0.05;
/// A change, or a share of the jobs, within this distance reproduces it, too.
const NEAR_PART: f64 = 0.05;
/// A claim this far beyond a bound is impossible; less is rounding of the printed figure.
const BEYOND: f64 = 0.005;
/// A relative change of a job's time below this counts as none.
const UNCHANGED: f64 = 0.001;

/// One printed figure.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The scenario that models the paper's run.
    pub scenario: String,
    /// The policy, or the placement.
    pub policy: String,
    /// The policy that it is compared with; `none` by default.
    #[serde(default = "none")]
    pub against: String,
    /// The policy's interval in seconds, where the paper prints the figure for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<f64>,
    /// Which figure is printed.
    pub figure: Figure,
    /// The printed value.
    pub value: f64,
    /// Where it is printed.
    pub source: String,
    /// Why it is impossible or inconsistent. A claim beyond a bound without such a reason may come
    /// from a workload that is published incompletely, and differs from ours.
    pub flaw: Option<String>,
}

/// The kind of figure of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A metric.
    Value(String),
    /// The relative difference of a metric from the other policy's.
    Change(String),
    /// A job's completion time, in seconds.
    Completion(String),
    /// The relative difference of that from the same job's under the other policy.
    CompletionChange(String),
    /// The change of the completion time of the job that gains most.
    BestJob,
    /// The change of the time to a target of the job that gains most.
    BestChange(Target),
    /// The part of the jobs that are done sooner than under the other policy.
    Improved,
    /// Pairs of a parameter server and a worker on different nodes.
    Crossing,
}

/// A job's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// An acceptable loss.
    Acceptable,
    /// The objective.
    Objective,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Our result agrees.
    Reproduced,
    /// Our result differs.
    Different,
    /// No policy can reach it, and the claim has a reason for that.
    Impossible,
}

/// A claim with our results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// The figure of the policy as published; for a baseline, its only figure.
    pub published: Option<f64>,
    /// The figure of the policy with our corrections.
    pub resolved: Option<f64>,
    /// The best possible value.
    pub bound: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// All claims that are built into the program.
pub fn published() -> Result<Vec<Claim>, toml::de::Error> {
    #[derive(Deserialize)]
    struct File {
        claim: Vec<Claim>,
    }
    let File { claim } = toml::from_str(include_str!("published.toml"))?;
    Ok(claim)
}

/// Formats a figure with few digits, for large tables.
pub fn compact(x: f64) -> String {
    let digits = match x.abs() {
        size if (x - x.round()).abs() < 0.005 || size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{x:.digits$}")
}

impl Figure {
    /// Its title in tables.
    pub fn title(&self) -> String {
        let metric =
            |name: &str| Metric::named(name).map_or(name, |metric| metric.title).to_owned();
        match self {
            Self::Value(name) | Self::Change(name) => metric(name),
            Self::Completion(job) | Self::CompletionChange(job) => format!("{job} ends"),
            Self::BestJob => "best job ends".to_owned(),
            Self::BestChange(Target::Acceptable) => "best job acceptable".to_owned(),
            Self::BestChange(Target::Objective) => "best job objective".to_owned(),
            Self::Improved => "jobs sooner".to_owned(),
            Self::Crossing => "pairs across nodes".to_owned(),
        }
    }
}

fn none() -> String {
    "none".to_owned()
}

impl Claim {
    /// Whether it holds for a policy that decides every `interval` seconds.
    pub fn applies_to(&self, interval: Option<f64>) -> bool {
        let same = |own: f64| interval.is_some_and(|other| (own - other).abs() < 1e-9 * own);
        self.interval.is_none_or(same)
    }

    /// Compares the claim with the results of its scenario.
    pub fn check(&self, all: &Comparison) -> Checked {
        let variant = |variant| {
            let arm = |own: &&Results| own.arm.policy == self.policy && own.arm.variant == variant;
            self.figure(all, all.results.iter().find(arm)?)
        };
        let resolved = variant(Variant::Resolved);
        self.judge(variant(Variant::Published).or(resolved), resolved, self.bound(all))
    }

    /// Compares the claim with placements of one gang. `fewest` is the bound of crossing pairs.
    pub fn check_placements(&self, all: &[Exchange], fewest: Option<u32>) -> Checked {
        let own = all.iter().find(|exchange| exchange.placement == self.policy);
        let crossing = own.map(|exchange| f64::from(exchange.crossing));
        self.judge(crossing, crossing, fewest.map(f64::from))
    }

    fn judge(&self, published: Option<f64>, resolved: Option<f64>, bound: Option<f64>) -> Checked {
        let verdict = self.verdict(published, bound);
        Checked { claim: self.clone(), published, resolved, bound, verdict }
    }

    /// The verdict on the claim, where `found` is our result and `bound` the best possible value.
    pub fn verdict(&self, found: Option<f64>, bound: Option<f64>) -> Verdict {
        let beyond = bound.is_some_and(|bound| {
            let apart = match self.better() {
                Better::Less => bound - self.value,
                Better::More => self.value - bound,
            };
            apart > BEYOND * if self.is_part() { 1.0 } else { bound.abs() }
        });
        let near = if self.is_part() { NEAR_PART } else { NEAR * self.value.abs() };
        let found = found.is_some_and(|own| (own - self.value).abs() <= near + 1e-9);
        match (beyond && self.flaw.is_some(), found) {
            (true, _) => Verdict::Impossible,
            (false, true) => Verdict::Reproduced,
            (false, false) => Verdict::Different,
        }
    }

    /// Formats a value: a change with its sign, a part of the jobs without.
    pub fn shown(&self, value: f64) -> String {
        if self.figure == Figure::Improved {
            format!("{:.0} %", 100.0 * value)
        } else if !self.is_part() {
            compact(value)
        } else if value.abs() < 5e-4 {
            // Zero has no sign.
            "0 %".to_owned()
        } else {
            format!("{:+.1} %", 100.0 * value)
        }
    }

    /// Whether the value is a relative one.
    pub fn is_part(&self) -> bool {
        match self.figure {
            Figure::Value(_) | Figure::Completion(_) | Figure::Crossing => false,
            Figure::Change(_)
            | Figure::CompletionChange(_)
            | Figure::BestJob
            | Figure::BestChange(_)
            | Figure::Improved => true,
        }
    }

    /// Which values are good.
    pub fn better(&self) -> Better {
        match &self.figure {
            Figure::Value(metric) | Figure::Change(metric) => {
                Metric::named(metric).map_or(Better::Less, |metric| metric.better)
            }
            Figure::Improved => Better::More,
            Figure::Completion(_)
            | Figure::CompletionChange(_)
            | Figure::BestJob
            | Figure::BestChange(_)
            | Figure::Crossing => Better::Less,
        }
    }

    fn other<'a>(&self, all: &'a Comparison) -> Option<&'a Results> {
        all.results.iter().find(|results| results.arm.to_string() == self.against)
    }

    /// The best possible value, where there is a bound.
    fn bound(&self, all: &Comparison) -> Option<f64> {
        match &self.figure {
            Figure::Value(metric) => Some(all.bound(Metric::named(metric)?)?.mean),
            Figure::Change(metric) => {
                let metric = Metric::named(metric)?;
                let other = self.other(all)?;
                if metric.finished_only && other.is_cut_short() {
                    return None;
                }
                let each = other.outcomes.iter().zip(&all.bounds).filter_map(|(other, bounds)| {
                    Some(bounds.get(metric.name)?.limit / metric.of(other)? - 1.0)
                });
                mean(&each.collect::<Vec<f64>>())
            }
            Figure::Completion(_)
            | Figure::CompletionChange(_)
            | Figure::BestJob
            | Figure::BestChange(_)
            | Figure::Improved
            | Figure::Crossing => None,
        }
    }

    /// Our figure for a policy, the mean over seeds.
    fn figure(&self, all: &Comparison, own: &Results) -> Option<f64> {
        if let Figure::Value(metric) = &self.figure {
            return Some(own.mean(Metric::named(metric)?)?.mean);
        }
        if let Figure::Completion(job) = &self.figure {
            let each = own
                .outcomes
                .iter()
                .filter_map(|outcome| outcome.jobs.iter().find(|own| own.id == *job)?.completion());
            return mean(&each.collect::<Vec<f64>>());
        }
        let other = self.other(all)?;
        let each = own.outcomes.iter().zip(&other.outcomes).filter_map(|(own, other)| {
            if let Figure::Change(metric) = &self.figure {
                let metric = Metric::named(metric)?;
                return Some(metric.of(own)? / metric.of(other)? - 1.0);
            }
            self.of_jobs(&own.jobs, &other.jobs)
        });
        mean(&each.collect::<Vec<f64>>())
    }

    /// Our figure for a policy's jobs, compared with those of another policy.
    fn of_jobs(&self, own: &[JobOutcome], other: &[JobOutcome]) -> Option<f64> {
        let changes = |time: &dyn Fn(&JobOutcome) -> Option<f64>| -> Vec<f64> {
            let pairs = own.iter().zip(other);
            pairs.filter_map(|(own, other)| Some(time(own)? / time(other)? - 1.0)).collect()
        };
        let least = |changes: Vec<f64>| changes.into_iter().min_by(f64::total_cmp);
        match &self.figure {
            Figure::CompletionChange(job) => {
                least(changes(&|own| own.completion().filter(|_| own.id == *job)))
            }
            Figure::BestJob => least(changes(&JobOutcome::completion)),
            Figure::BestChange(target) => least(changes(&|own| {
                let reached = match target {
                    Target::Acceptable => own.acceptable,
                    Target::Objective => own.objective,
                };
                Some(reached? - own.arrived)
            })),
            Figure::Improved => {
                let changes = changes(&JobOutcome::completion);
                let sooner = changes.iter().filter(|change| **change < -UNCHANGED).count();
                (!changes.is_empty()).then(|| count(sooner) / count(changes.len()))
            }
            Figure::Value(_) | Figure::Change(_) | Figure::Completion(_) | Figure::Crossing => None,
        }
    }
}

#[cfg(test)]
mod tests;
