//! Computes one figure of a policy over a range of parameter values.

mod axis;
mod measure;

use crate::compare::run_of;
use crate::metrics::Interval;
use crate::scenario::{Arm, Scenario, ScenarioError};

pub use axis::Axis;
pub use measure::Measure;

/// A figure of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Over the seeds.
    pub interval: Interval,
    /// Whether it leaves out jobs that did not finish.
    pub leaves_out_jobs: bool,
}

/// One or two parameters of one policy that are varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    axes: Vec<Axis>,
}

impl Sweep {
    /// A sweep of one or two axes, since a table has two sides. Both must belong to the same
    /// policy, because a parameter has no effect under another.
    pub fn new(axes: Vec<Axis>) -> Result<Self, ScenarioError> {
        let names: Vec<String> = axes.iter().map(Axis::name).collect();
        let bad = |rule: &str| ScenarioError::option("sweep", names.join(" and "), rule);
        match axes.as_slice() {
            [one, other] if one.policy != other.policy => Err(bad("parameters of one policy")),
            [one, other] if one.parameter == other.parameter => {
                Err(bad("two parameters that differ"))
            }
            [_] | [_, _] => Ok(Self { axes }),
            [] | [_, _, _, ..] => Err(bad("one or two parameters")),
        }
    }

    /// The parameters that are varied.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The policy of the parameters.
    pub fn policy(&self) -> &str {
        self.axes.first().map_or("", |axis| &axis.policy)
    }

    /// Every combination of values, one for each axis; the last axis varies fastest.
    pub fn points(&self) -> Vec<Vec<f64>> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let with = |point: &Vec<f64>| {
                let longer = |value: &f64| [point.as_slice(), &[*value]].concat();
                axis.values.iter().map(longer).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(with).collect();
        }
        points
    }

    /// The scenario with the parameters of a point.
    pub fn at(&self, scenario: &Scenario, point: &[f64]) -> Scenario {
        let mut scenario = scenario.clone();
        let params = scenario.params.entry(self.policy().to_owned()).or_default();
        for (axis, value) in self.axes.iter().zip(point) {
            params.set(axis.parameter.clone(), *value);
        }
        scenario
    }
}

/// A figure of a policy over seeds 1 to `seeds`; `None` if no run has it.
pub fn measure(
    scenario: &Scenario,
    arm: &Arm,
    what: &Measure,
    seeds: u32,
) -> Result<Option<Measured>, ScenarioError> {
    let (mut figures, mut leaves_out_jobs) = (Vec::new(), false);
    for seed in 1..=u64::from(seeds) {
        let outcome = run_of(scenario, arm, seed)?;
        figures.extend(what.of(&outcome));
        leaves_out_jobs |= what.leaves_out_jobs(&outcome);
    }
    let interval = Interval::from_values(&figures);
    Ok(interval.map(|interval| Measured { interval, leaves_out_jobs }))
}

#[cfg(test)]
mod tests;
