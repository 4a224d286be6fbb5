//! One figure of a policy, over a range of values of its parameters.

mod axis;
mod measure;

use crate::compare::run_of;
use crate::metrics::Interval;
use crate::scenario::{Arm, Scenario, ScenarioError};

pub use axis::Axis;
pub use measure::Measure;

/// What is varied: one or two parameters of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    axes: Vec<Axis>,
}

impl Sweep {
    /// Of one or two axes: a table has no more sides. Both must be the same policy's, for a
    /// parameter changes nothing under another.
    pub fn new(axes: Vec<Axis>) -> Result<Self, ScenarioError> {
        let names: Vec<String> = axes.iter().map(Axis::name).collect();
        let bad = |rule: &str| ScenarioError::value("sweep", &names.join(" and "), rule);
        match axes.as_slice() {
            [one, other] if one.policy != other.policy => {
                Err(bad("both parameters must be the same policy's"))
            }
            [one, other] if one.parameter == other.parameter => {
                Err(bad("the parameters must be two, not one twice"))
            }
            [_] | [_, _] => Ok(Self { axes }),
            [] | [_, _, _, ..] => Err(bad("one or two parameters can be varied at once")),
        }
    }

    /// The parameters that are varied.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The policy whose parameters they are.
    pub fn policy(&self) -> &str {
        self.axes.first().map_or("", |axis| &axis.policy)
    }

    /// Every combination of values, one for each axis: the last axis runs quickest.
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

/// A figure of a policy over seeds 1 to `seeds`: `None` where no run has one.
pub fn measure(
    scenario: &Scenario,
    arm: &Arm,
    what: &Measure,
    seeds: u32,
) -> Result<Option<Interval>, ScenarioError> {
    let mut figures = Vec::new();
    for seed in 1..=u64::from(seeds) {
        figures.extend(what.of(&run_of(scenario, arm, seed)?));
    }
    Ok(Interval::of(&figures))
}

#[cfg(test)]
mod tests;
