//! Several policies on one scenario, over the same seeds.

use paceline_policy::Variant;
use paceline_policy::policies::{self, AnyPolicy, Scope};

use crate::bounds::{Bound, Bounds, equal_shares};
use crate::gangs;
use crate::metrics::{Interval, METRICS, Metric};
use crate::outcome::Outcome;
use crate::scenario::{Arm, Scenario, ScenarioError};
use crate::world::Run;

/// A gap that is a smaller part of the figure is none.
const LEAST_GAP: f64 = 1e-6;

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The seeds, the same for every policy.
    pub seeds: Vec<u64>,
    /// Each policy, in the order asked for.
    pub results: Vec<Results>,
    /// The bounds of each seed's workload.
    pub bounds: Vec<Bounds>,
}

/// The runs of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The policy.
    pub arm: Arm,
    /// One run for each seed.
    pub outcomes: Vec<Outcome>,
}

/// Runs every policy over seeds 1 to `seeds`.
pub fn compare(scenario: &Scenario, arms: &[Arm], seeds: u32) -> Result<Comparison, ScenarioError> {
    let seeds: Vec<u64> = (1..=u64::from(seeds)).collect();
    let workloads: Vec<Workload> = seeds.iter().map(|seed| Workload::of(scenario, *seed)).collect();
    let mut results = Vec::new();
    for arm in arms {
        let outcomes = seeds.iter().zip(&workloads);
        let outcomes = outcomes.map(|(seed, of)| outcome(scenario, arm, *seed, &of.equal));
        let outcomes = outcomes.collect::<Result<Vec<Outcome>, ScenarioError>>()?;
        results.push(Results { arm: arm.clone(), outcomes });
    }
    let bounds = workloads.into_iter().map(|workload| workload.bounds).collect();
    Ok(Comparison { seeds, results, bounds })
}

/// Every policy that has something to decide in a scenario, in both variants where its paper differs
/// from what a careful reader would build. The first is what others are compared with.
pub fn every_arm(scenario: &Scenario) -> Vec<Arm> {
    let mut arms = Vec::new();
    for entry in policies::ALL.iter().filter(|entry| !entry.is_yardstick()) {
        let variants: &[Variant] = if entry.is_of_a_paper() {
            &[Variant::Published, Variant::Resolved]
        } else {
            &[Variant::Resolved]
        };
        for variant in variants {
            let arm = Arm { policy: entry.name.to_owned(), variant: *variant };
            let fits = match scenario.policy(&arm) {
                Ok(AnyPolicy::Jobs(_)) => {
                    scenario.gangs.is_empty()
                        && (entry.scope == Scope::Node || scenario.nodes.len() > 1)
                }
                Ok(AnyPolicy::Gangs(_)) => !scenario.gangs.is_empty() && scenario.until.is_finite(),
                Ok(AnyPolicy::Tasks(_)) | Err(_) => false,
            };
            if fits {
                arms.push(arm);
            }
        }
    }
    arms
}

/// What one seed's jobs are measured by.
struct Workload {
    bounds: Bounds,
    /// What equal shares would give each.
    equal: Vec<f64>,
}

impl Workload {
    fn of(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { nodes, gangs, until, .. } = scenario;
        if !gangs.is_empty() {
            return Self { bounds: Bounds::of_gangs(gangs, nodes), equal: Vec::new() };
        }
        let jobs = scenario.draw(seed);
        let equal = equal_shares(&jobs, nodes);
        Self { bounds: Bounds::of(&jobs, &equal, nodes, *until), equal }
    }
}

/// What comes of one run, where equal shares would give each job so much time.
fn outcome(
    scenario: &Scenario,
    arm: &Arm,
    seed: u64,
    equal: &[f64],
) -> Result<Outcome, ScenarioError> {
    let done = if scenario.gangs.is_empty() {
        Run { scenario, arm, seed, record: false }.simulate()?
    } else {
        gangs::simulate(scenario, arm, false)?
    };
    let mut outcome = done.outcome;
    for (job, equal) in outcome.jobs.iter_mut().zip(equal) {
        job.equal = Some(*equal).filter(|equal| equal.is_finite());
    }
    Ok(outcome)
}

/// Runs a policy over these seeds, without bounds.
pub fn runs(scenario: &Scenario, arm: &Arm, seeds: &[u64]) -> Result<Results, ScenarioError> {
    let outcomes = seeds.iter().map(|seed| run_of(scenario, arm, *seed));
    Ok(Results { arm: arm.clone(), outcomes: outcomes.collect::<Result<_, _>>()? })
}

/// What comes of one run, without the bounds that it could be held against.
pub(crate) fn run_of(scenario: &Scenario, arm: &Arm, seed: u64) -> Result<Outcome, ScenarioError> {
    let jobs = if scenario.gangs.is_empty() { scenario.draw(seed) } else { Vec::new() };
    outcome(scenario, arm, seed, &equal_shares(&jobs, &scenario.nodes))
}

impl Comparison {
    /// Which metrics some policy has a figure of.
    pub fn metrics(&self) -> Vec<&'static Metric> {
        let known = |metric: &&Metric| self.results.iter().any(|own| own.mean(metric).is_some());
        METRICS.iter().filter(known).collect()
    }

    /// The bound of a metric, the mean over seeds.
    pub fn bound(&self, metric: &Metric) -> Option<Interval> {
        Interval::of(&self.each_bound(metric, |bound| Some(bound.limit)))
    }

    /// What a schedule that knows the future reaches, the mean over seeds: the other end of the bound.
    pub fn reached(&self, metric: &Metric) -> Option<Interval> {
        let each = self.each_bound(metric, |bound| bound.reached);
        Interval::of(&each).filter(|_| each.len() == self.seeds.len())
    }

    fn each_bound(&self, metric: &Metric, end: fn(Bound) -> Option<f64>) -> Vec<f64> {
        self.bounds.iter().filter_map(|bounds| end(bounds.get(metric.name)?)).collect()
    }

    /// By how much a policy's figure is over the bound, as a factor: the mean over seeds. `None` where
    /// a run was cut short and the figure leaves out what was not over.
    pub fn ratio(&self, results: &Results, metric: &Metric) -> Option<f64> {
        if metric.of_the_ended && results.is_cut_short() {
            return None;
        }
        let each = results.outcomes.iter().zip(&self.bounds).filter_map(|(outcome, bounds)| {
            let bound = bounds.get(metric.name).filter(|bound| bound.limit > 0.0)?;
            Some(metric.of(outcome)? / bound.limit)
        });
        Interval::of(&each.collect::<Vec<f64>>()).map(|interval| interval.mean)
    }

    /// The part of the gap between the first policy's figure and the bound's lower end that a policy
    /// closes: 1 at the bound, negative where it is worse than the first. Of means over the seeds. `None`
    /// if the gap is zero or a run stopped before its jobs ended.
    pub fn gap_closed(&self, results: &Results, metric: &Metric) -> Option<f64> {
        let first = self.results.first()?;
        if metric.of_the_ended && (results.is_cut_short() || first.is_cut_short()) {
            return None;
        }
        let (base, own) = (first.mean(metric)?.mean, results.mean(metric)?.mean);
        let gap = base - self.bound(metric)?.mean;
        (gap.abs() > LEAST_GAP * base.abs()).then(|| (base - own) / gap)
    }

    /// What a policy's figure differs by from the first policy's, seed by seed: what both have in
    /// common is no part of it.
    pub fn difference(&self, results: &Results, metric: &Metric) -> Option<Interval> {
        let first = self.results.first()?;
        let each = results.outcomes.iter().zip(&first.outcomes);
        let each = each.filter_map(|(own, other)| Some(metric.of(own)? - metric.of(other)?));
        Interval::of(&each.collect::<Vec<f64>>())
    }
}

impl Results {
    /// Whether jobs that have an end had not come to it when some run ended.
    pub fn is_cut_short(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.unfinished() > 0)
    }

    /// The mean of a metric over the seeds.
    pub fn mean(&self, metric: &Metric) -> Option<Interval> {
        let each = self.outcomes.iter().filter_map(|outcome| metric.of(outcome));
        Interval::of(&each.collect::<Vec<f64>>())
    }
}

#[cfg(test)]
mod tests;
