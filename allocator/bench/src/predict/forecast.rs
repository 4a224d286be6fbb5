//! The simulated runs of every arm, added to the measurements.

use std::collections::BTreeMap;

use paceline_sim::bounds::Bound;

use super::super::outcome::{
    ArmFindings, Both, Fidelity, Figures, Prediction, ReferenceTimes, RunFindings, Trajectory,
    figures, job_figures, mean,
};
use super::Predictor;
use super::fidelity::pairs;
use super::predictor::Trajectories;

/// The simulator's predictions for each arm.
#[derive(Debug)]
pub(crate) struct Forecast {
    pub(crate) prediction: Prediction,
    /// The simulated runs of each arm; empty if it cannot be simulated.
    pub(crate) trajectories: Vec<Trajectories>,
    /// The bounds of each repeat, by the names of the measures.
    bounds: BTreeMap<u32, BTreeMap<String, Bound>>,
}

impl Forecast {
    pub(crate) fn new(
        predictor: &Predictor,
        arms: &[ArmFindings],
        reference: &ReferenceTimes,
    ) -> Self {
        let bounds = predictor.bounds();
        let names = bounds.values().flat_map(BTreeMap::keys);
        let known = names.filter_map(|name| {
            let each = bounds.values().map(|of_repeat| of_repeat.get(name).copied());
            Some((name.clone(), mean_bound(each)?))
        });
        let prediction = Prediction {
            why_not: None,
            from: Some(predictor.from.clone()),
            contention: predictor.of_nodes(|node| node.contention.ok()),
            background: predictor.of_nodes(|node| node.background.ok()),
            speed_sensitivity: Some(predictor.speed.sensitivity),
            bounds: known.collect(),
        };
        let trajectories = arms.iter().map(|arm| predictor.simulate(arm, reference)).collect();
        Self { prediction, trajectories, bounds }
    }

    /// No prediction, and `why`.
    pub(crate) fn none(why: String) -> Self {
        let prediction = Prediction { why_not: Some(why), ..Prediction::default() };
        Self { prediction, trajectories: Vec::new(), bounds: BTreeMap::new() }
    }

    /// Adds predictions, ratios to the bounds and fidelity to the arms.
    pub(crate) fn add_to(&self, mut arms: Vec<ArmFindings>) -> Vec<ArmFindings> {
        for (arm, trajectories) in arms.iter_mut().zip(&self.trajectories) {
            for run in &mut arm.runs {
                predict(run, trajectories);
            }
            let counted: Vec<&RunFindings> = arm.runs.iter().filter(|run| run.is_clean()).collect();
            for (name, figure) in &mut arm.figures {
                let Some(figure) = figure else { continue };
                figure.predicted = mean_prediction(counted.iter().map(|run| run.both(name)));
                let with = counted.iter().filter(|run| run.both(name).0.is_some());
                let bound = mean_bound(with.map(|run| self.bound(run.repeat, name)));
                let bound = bound.filter(|bound| bound.limit > 0.0);
                figure.over_bound = bound.map(|bound| figure.measured.mean / bound.limit);
            }
            for (place, job) in arm.jobs.iter_mut().enumerate() {
                for (name, figure) in &mut job.figures {
                    let Some(figure) = figure else { continue };
                    let both = counted.iter().map(|run| run.both_of_job(place, name));
                    figure.predicted = mean_prediction(both);
                }
            }
            arm.fidelity = Fidelity::all(arm, trajectories);
        }
        arms
    }

    fn bound(&self, repeat: u32, name: &str) -> Option<Bound> {
        self.bounds.get(&repeat)?.get(name).copied()
    }
}

/// Writes into a run the mean figures of its repeat's simulated runs.
fn predict(run: &mut RunFindings, trajectories: &Trajectories) {
    let own = trajectories.iter().filter(|((repeat, _), _)| *repeat == run.repeat);
    let own: Vec<&Trajectory> = own.map(|(_, trajectory)| trajectory).collect();
    run.predicted = means(own.iter().map(|trajectory| figures(trajectory, None)));
    for (place, job) in run.jobs.iter_mut().enumerate() {
        job.predicted = means(own.iter().map(|trajectory| job_figures(trajectory, place)));
    }
}

/// The means over the seeds; a figure that a seed lacks is `None`.
fn means(each: impl Iterator<Item = Figures>) -> Figures {
    let each: Vec<Figures> = each.collect();
    let names = each.first().map(|figures| figures.keys()).into_iter().flatten();
    let mean_of = |name: &String| {
        let values = each.iter().map(|its| its.get(name).copied().flatten());
        mean(&values.collect::<Option<Vec<f64>>>()?)
    };
    names.map(|name| (name.clone(), mean_of(name))).collect()
}

fn mean_prediction(runs: impl Iterator<Item = Both>) -> Option<f64> {
    let predicted = pairs(runs)?.into_iter().map(|(_, predicted)| predicted);
    mean(&predicted.collect::<Vec<f64>>())
}

/// The mean over the repeats; `None` unless each has the bound.
fn mean_bound(each: impl Iterator<Item = Option<Bound>>) -> Option<Bound> {
    let each: Vec<Bound> = each.collect::<Option<_>>()?;
    let reached: Option<Vec<f64>> = each.iter().map(|bound| bound.reached).collect();
    let limits: Vec<f64> = each.iter().map(|bound| bound.limit).collect();
    Some(Bound { limit: mean(&limits)?, reached: reached.and_then(|reached| mean(&reached)) })
}
