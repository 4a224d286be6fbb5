//! Compares several policies on one scenario, over the same seeds.

use paceline_policy::Variant;
use paceline_policy::policies::{self, AnyPolicy, Scope};

use crate::bounds::{Bound, Bounds, equal_shares};
use crate::gangs;
use crate::metrics::{Interval, METRICS, Metric};
use crate::outcome::Outcome;
use crate::scenario::{Arm, Scenario, ScenarioError};
use crate::world::Run;

/// A smaller relative gap counts as none.
const MIN_GAP: f64 = 1e-6;

/// The most jobs of all runs of one comparison, which are held in memory.
const MAX_RESULTS: usize = 2_000_000;

/// The results of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The seeds, the same for every policy.
    pub seeds: Vec<u64>,
    /// The results of each policy, in the order asked for.
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
    compare_noting(scenario, arms, seeds, |_, _| {})
}

/// The same. After each run, calls `note` with the number of runs that are done and that of all.
pub fn compare_noting(
    scenario: &Scenario,
    arms: &[Arm],
    seeds: u32,
    mut note: impl FnMut(u64, u64),
) -> Result<Comparison, ScenarioError> {
    let jobs = scenario.jobs();
    let results =
        usize::try_from(seeds).ok().and_then(|n| n.checked_mul(jobs)?.checked_mul(arms.len()));
    if results.is_none_or(|results| results > MAX_RESULTS) {
        let arms = arms.len();
        return Err(ScenarioError::TooMany { arms, seeds, jobs, most: MAX_RESULTS });
    }
    let all = u64::try_from(arms.len()).unwrap_or(u64::MAX).saturating_mul(seeds.into());
    let mut done = 0;
    let seeds: Vec<u64> = (1..=u64::from(seeds)).collect();
    let workloads: Vec<Workload> =
        seeds.iter().map(|seed| Workload::new(scenario, *seed)).collect();
    let mut results = Vec::new();
    for arm in arms {
        let outcomes = seeds.iter().zip(&workloads);
        let outcomes = outcomes.map(|(seed, of)| {
            let outcome = outcome(scenario, arm, *seed, &of.equal);
            done += 1;
            note(done, all);
            outcome
        });
        let outcomes = outcomes.collect::<Result<Vec<Outcome>, ScenarioError>>()?;
        results.push(Results { arm: arm.clone(), outcomes });
    }
    let bounds = workloads.into_iter().map(|workload| workload.bounds).collect();
    Ok(Comparison { seeds, results, bounds })
}

/// Every policy that applies to a scenario; both variants where our corrections change a paper's
/// policy. Others are compared with the first one.
pub fn every_arm(scenario: &Scenario) -> Vec<Arm> {
    let mut arms = Vec::new();
    for entry in policies::ALL.iter().filter(|entry| !entry.is_yardstick()) {
        let variants: &[Variant] = if entry.is_from_paper() {
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

/// The references of one seed's jobs.
struct Workload {
    bounds: Bounds,
    /// Each job's completion time under equal shares, in seconds.
    equal: Vec<f64>,
}

impl Workload {
    fn new(scenario: &Scenario, seed: u64) -> Self {
        let Scenario { nodes, gangs, until, .. } = scenario;
        if !gangs.is_empty() {
            return Self { bounds: Bounds::for_gangs(gangs, nodes), equal: Vec::new() };
        }
        let jobs = scenario.draw(seed);
        let equal = equal_shares(&jobs, nodes);
        Self { bounds: Bounds::for_jobs(&jobs, &equal, nodes, *until), equal }
    }
}

/// Runs a policy once. `equal` are the completion times under equal shares.
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

/// Runs a policy once, without computing bounds.
pub(crate) fn run_of(scenario: &Scenario, arm: &Arm, seed: u64) -> Result<Outcome, ScenarioError> {
    let jobs = if scenario.gangs.is_empty() { scenario.draw(seed) } else { Vec::new() };
    outcome(scenario, arm, seed, &equal_shares(&jobs, &scenario.nodes))
}

impl Comparison {
    /// The metrics that at least one policy has a figure of.
    pub fn metrics(&self) -> Vec<&'static Metric> {
        let known = |metric: &&Metric| self.results.iter().any(|own| own.mean(metric).is_some());
        METRICS.iter().filter(known).collect()
    }

    /// The bound of a metric, the mean over seeds.
    pub fn bound(&self, metric: &Metric) -> Option<Interval> {
        Interval::from_values(&self.each_bound(metric, |bound| Some(bound.limit)))
    }

    /// The value that a schedule with knowledge of the future reaches, the mean over seeds: the
    /// other end of the bound.
    pub fn reached(&self, metric: &Metric) -> Option<Interval> {
        let each = self.each_bound(metric, |bound| bound.reached);
        Interval::from_values(&each).filter(|_| each.len() == self.seeds.len())
    }

    fn each_bound(&self, metric: &Metric, end: fn(Bound) -> Option<f64>) -> Vec<f64> {
        self.bounds.iter().filter_map(|bounds| end(bounds.get(metric.name)?)).collect()
    }

    /// A policy's figure over the bound, the mean over seeds. `None` if a run was cut short and the
    /// metric ignores unfinished jobs.
    pub fn ratio(&self, results: &Results, metric: &Metric) -> Option<f64> {
        if metric.finished_only && results.is_cut_short() {
            return None;
        }
        let each = results.outcomes.iter().zip(&self.bounds).filter_map(|(outcome, bounds)| {
            let bound = bounds.get(metric.name).filter(|bound| bound.limit > 0.0)?;
            Some(metric.of(outcome)? / bound.limit)
        });
        Interval::from_values(&each.collect::<Vec<f64>>()).map(|interval| interval.mean)
    }

    /// The part of the gap between the first policy's figure and the bound that a policy closes, by
    /// means over the seeds. It is 1 at the bound, and negative if the policy is worse than the
    /// first. Returns `None` without a gap, or if a run stopped before its jobs ended.
    pub fn gap_closed(&self, results: &Results, metric: &Metric) -> Option<f64> {
        let first = self.results.first()?;
        if metric.finished_only && (results.is_cut_short() || first.is_cut_short()) {
            return None;
        }
        let (base, own) = (first.mean(metric)?.mean, results.mean(metric)?.mean);
        let gap = base - self.bound(metric)?.mean;
        (gap.abs() > MIN_GAP * base.abs()).then(|| (base - own) / gap)
    }

    /// The difference of a policy's figure from the first policy's, seed by seed, which cancels
    /// what both have in common.
    pub fn difference(&self, results: &Results, metric: &Metric) -> Option<Interval> {
        let first = self.results.first()?;
        let each = results.outcomes.iter().zip(&first.outcomes);
        let each = each.filter_map(|(own, other)| Some(metric.of(own)? - metric.of(other)?));
        Interval::from_values(&each.collect::<Vec<f64>>())
    }

    /// Whether that difference leaves out jobs that did not finish.
    pub fn difference_leaves_out_jobs(&self, results: &Results, metric: &Metric) -> bool {
        let first = self.results.first();
        results.leaves_out_jobs(metric) || first.is_some_and(|first| first.leaves_out_jobs(metric))
    }
}

impl Results {
    /// Whether some run ended before all of its jobs did.
    pub fn is_cut_short(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.unfinished() > 0)
    }

    /// The mean of a metric over the seeds.
    pub fn mean(&self, metric: &Metric) -> Option<Interval> {
        let each = self.outcomes.iter().filter_map(|outcome| metric.of(outcome));
        Interval::from_values(&each.collect::<Vec<f64>>())
    }

    /// Whether that mean leaves out jobs that did not finish.
    pub fn leaves_out_jobs(&self, metric: &Metric) -> bool {
        self.outcomes.iter().any(|outcome| metric.leaves_out_jobs(outcome))
    }
}

#[cfg(test)]
mod tests;
