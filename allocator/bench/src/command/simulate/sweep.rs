//! `paceline simulate --sweep`: one figure of a policy over its parameters.

mod as_json;
mod table;

use indicatif::{ProgressBar, ProgressStyle};
use paceline_policy::names::did_you_mean;
use paceline_sim::scenario::Arm;
use paceline_sim::sweep::{Axis, Measure, Measured, Sweep, measure};
use paceline_sim::{Scenario, ScenarioError};

use super::report;
use crate::text::titled;
use rayon::prelude::*;

pub(super) use table::shown;

/// The results of a sweep.
#[derive(Debug)]
pub(super) struct Swept<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) sweep: Sweep,
    pub(super) measure: Measure,
    pub(super) seeds: u32,
    /// The figures of each variant of the policy, in the order of the sweep's points.
    pub(super) maps: Vec<Map>,
    /// Policies without these parameters; all others are compared with the first.
    pub(super) others: Vec<(Arm, Option<Measured>)>,
}

/// The figures of one policy.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) arm: Arm,
    pub(super) figures: Vec<Option<Measured>>,
}

/// Runs the sweep over `axes`, on all CPUs. If no arm has the swept policy, adds one that has.
pub(super) fn run(
    scenario: &Scenario,
    arms: Vec<Arm>,
    axes: Vec<Axis>,
    what: Measure,
    seeds: u32,
) -> Result<Swept<'_>, ScenarioError> {
    known(scenario, &what)?;
    let sweep = Sweep::new(axes)?;
    let (mut swept, others): (Vec<Arm>, Vec<Arm>) =
        arms.into_iter().partition(|arm| arm.policy == sweep.policy());
    if swept.is_empty() {
        swept.push(sweep.policy().parse()?);
    }
    let points = sweep.points();
    let varied: Vec<Scenario> = points.iter().map(|point| sweep.at(scenario, point)).collect();
    let varied = swept.iter().flat_map(|arm| varied.iter().map(move |there| (arm, there)));
    let tasks: Vec<(&Arm, &Scenario)> =
        varied.chain(others.iter().map(|arm| (arm, scenario))).collect();
    let bar = ProgressBar::new(tasks.len().try_into().unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let figures: Vec<_> = tasks
        .par_iter()
        .map(|(arm, scenario)| {
            let figure = measure(scenario, arm, &what, seeds);
            bar.inc(1);
            figure
        })
        .collect();
    bar.finish_and_clear();
    let mut figures = figures.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
    let maps = swept
        .into_iter()
        .map(|arm| Map { arm, figures: figures.by_ref().take(points.len()).collect() });
    let maps = maps.collect();
    let others = others.into_iter().zip(figures).collect();
    Ok(Swept { scenario, sweep, measure: what, seeds, maps, others })
}

/// Checks that the job exists whose completion time is measured.
fn known(scenario: &Scenario, what: &Measure) -> Result<(), ScenarioError> {
    let Measure::Completion(name) = what else { return Ok(()) };
    let jobs = scenario.draw(1);
    let gangs = scenario.gangs.iter().map(|gang| gang.id.as_str());
    let names: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).chain(gangs).collect();
    if names.contains(&name.as_str()) {
        return Ok(());
    }
    let hint = did_you_mean(name, names.iter().copied());
    let some = names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    let expected = format!("completion:JOB of a job of the scenario, which has {some}{hint}");
    Err(ScenarioError::Option { option: "metric", value: what.to_string(), expected })
}

impl Swept<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        table::text(self)
    }

    /// For programs.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        as_json::text(self)
    }

    /// As a page with heat maps.
    pub(super) fn page(&self) -> String {
        report::sweep(self)
    }

    /// The rows and columns of a heat map. A single parameter gives one column.
    pub(super) fn sides(&self) -> (&[f64], &[f64]) {
        match self.sweep.axes() {
            [rows, columns] => (&rows.values, &columns.values),
            [rows] => (&rows.values, &[0.0]),
            _ => (&[], &[]),
        }
    }

    /// How much a figure exceeds that of the first policy that is not varied, as a fraction of it.
    pub(super) fn change(&self, figure: Option<Measured>) -> Option<f64> {
        let (_, base) = self.others.first()?;
        let base = (*base)?.interval.mean;
        (base != 0.0).then_some(figure?.interval.mean / base - 1.0)
    }

    /// Where a figure lies between the smallest (0) and the largest (1) of all maps.
    pub(super) fn heat(&self, figure: Option<Measured>) -> Option<f64> {
        let all = self.maps.iter().flat_map(|map| &map.figures).flatten();
        let (least, most) = all
            .map(|figure| figure.interval.mean)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let mean = figure?.interval.mean;
        Some(if most > least { (mean - least) / (most - least) } else { 0.0 })
    }

    /// Whether some figure leaves out jobs that did not finish.
    pub(super) fn leaves_out_jobs(&self) -> bool {
        let others = self.others.iter().map(|(_, figure)| figure);
        let all = self.maps.iter().flat_map(|map| &map.figures).chain(others);
        all.flatten().any(|figure| figure.leaves_out_jobs)
    }

    /// The measured figure with its unit.
    pub(super) fn title(&self) -> String {
        titled(&self.measure.title(), self.measure.unit())
    }
}

#[cfg(test)]
mod tests;
