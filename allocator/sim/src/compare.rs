//! Several policies on one scenario, over the same seeds.

use crate::bounds::Bounds;
use crate::gangs;
use crate::metrics::{Interval, METRICS, Metric};
use crate::outcome::Outcome;
use crate::scenario::{Arm, Scenario, ScenarioError};
use crate::world::Run;

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
    let mut results = Vec::new();
    for arm in arms {
        let run = |seed: &u64| {
            if scenario.gangs.is_empty() {
                let run = Run { scenario, arm, seed: *seed, record: false };
                return Ok(run.simulate()?.outcome);
            }
            Ok(gangs::simulate(scenario, arm, false)?.outcome)
        };
        let outcomes = seeds.iter().map(run).collect::<Result<Vec<Outcome>, ScenarioError>>()?;
        results.push(Results { arm: arm.clone(), outcomes });
    }
    let bounds = seeds.iter().map(|seed| Bounds::of(&scenario.draw(*seed), &scenario.nodes));
    Ok(Comparison { bounds: bounds.collect(), seeds, results })
}

impl Comparison {
    /// Which metrics some policy has a figure of.
    pub fn metrics(&self) -> Vec<&'static Metric> {
        let known = |metric: &&Metric| self.results.iter().any(|own| own.mean(metric).is_some());
        METRICS.iter().filter(known).collect()
    }

    /// The mean bound of a metric.
    pub fn bound(&self, metric: &Metric) -> Option<Interval> {
        let each: Vec<f64> =
            self.bounds.iter().filter_map(|bounds| bounds.get(metric.name)).collect();
        Interval::of(&each)
    }

    /// By how much a policy's figure is over the bound, as a factor: the mean over seeds.
    pub fn ratio(&self, results: &Results, metric: &Metric) -> Option<f64> {
        let each = results.outcomes.iter().zip(&self.bounds).filter_map(|(outcome, bounds)| {
            let bound = bounds.get(metric.name).filter(|bound| *bound > 0.0)?;
            Some(metric.of(outcome)? / bound)
        });
        Interval::of(&each.collect::<Vec<f64>>()).map(|interval| interval.mean)
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
    /// The mean of a metric over the seeds.
    pub fn mean(&self, metric: &Metric) -> Option<Interval> {
        let each = self.outcomes.iter().filter_map(|outcome| metric.of(outcome));
        Interval::of(&each.collect::<Vec<f64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::LIBRARY;

    #[test]
    fn policies_are_compared_over_the_same_seeds_and_with_the_bounds() {
        let listed = LIBRARY.iter().find(|listed| listed.name == "FC-5").unwrap();
        let scenario = Scenario::parse(listed.text).unwrap();
        let arms: Vec<Arm> = ["none", "flowcon"].map(|name| name.parse().unwrap()).to_vec();
        let comparison = compare(&scenario, &arms, 3).unwrap();
        assert_eq!(comparison.seeds, [1, 2, 3]);
        let completion = &METRICS[0];
        let [none, flowcon] = comparison.results.as_slice() else { panic!() };
        let difference = comparison.difference(flowcon, completion).unwrap();
        let means = [none, flowcon].map(|results| results.mean(completion).unwrap().mean);
        assert!((difference.mean - (means[1] - means[0])).abs() < 1e-9);
        assert!(comparison.difference(none, completion).unwrap().mean.abs() <= 0.0);
        for results in [none, flowcon] {
            for metric in [completion, &METRICS[3]] {
                assert!(comparison.ratio(results, metric).unwrap() >= 1.0 - 1e-9, "{metric:?}");
            }
        }
        assert!(comparison.metrics().iter().any(|metric| metric.name == "loss_area"));
        assert!(!comparison.metrics().iter().any(|metric| metric.name == "met"));
    }
}
