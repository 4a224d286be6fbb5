//! Every arm simulated, and put beside what was measured.

use std::collections::BTreeMap;

use paceline_sim::bounds::Bound;

use super::super::outcome::{
    ArmFindings, Both, Course, Figures, Ground, RunFindings, figures, job_figures, mean,
};
use super::fidelity::{Fidelity, pairs};
use super::predictor::Courses;
use super::{Prediction, Predictor};

/// What the simulator says of each arm.
#[derive(Debug)]
pub(crate) struct Forecast {
    pub(crate) prediction: Prediction,
    /// Of each arm; none where it cannot be simulated.
    pub(crate) courses: Vec<Courses>,
    /// Of each repeat.
    bounds: BTreeMap<u32, BTreeMap<String, Bound>>,
}

impl Forecast {
    pub(crate) fn of(predictor: &Predictor, arms: &[ArmFindings], ground: &Ground) -> Self {
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
            speed_felt: Some(predictor.speed.felt),
            bounds: known.collect(),
        };
        let courses = arms.iter().map(|arm| predictor.simulate(arm, ground)).collect();
        Self { prediction, courses, bounds }
    }

    /// Nothing can be said, and `why`.
    pub(crate) fn none(why: String) -> Self {
        let prediction = Prediction { why_not: Some(why), ..Prediction::default() };
        Self { prediction, courses: Vec::new(), bounds: BTreeMap::new() }
    }

    /// Writes predictions, distances to the bounds and what follows from them into the arms' figures.
    pub(crate) fn put_beside(&self, arms: &mut [ArmFindings]) {
        for (arm, courses) in arms.iter_mut().zip(&self.courses) {
            for run in &mut arm.runs {
                predict(run, courses);
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
            arm.fidelity = Fidelity::all(arm, courses);
        }
    }

    fn bound(&self, repeat: u32, name: &str) -> Option<Bound> {
        self.bounds.get(&repeat)?.get(name).copied()
    }
}

/// Writes into a run what the seeds of its repeat come to.
fn predict(run: &mut RunFindings, courses: &Courses) {
    let own = courses.iter().filter(|((repeat, _), _)| *repeat == run.repeat);
    let own: Vec<&Course> = own.map(|(_, course)| course).collect();
    run.predicted = means(own.iter().map(|course| figures(course, None)));
    for (place, job) in run.jobs.iter_mut().enumerate() {
        job.predicted = means(own.iter().map(|course| job_figures(course, place)));
    }
}

/// The means over the seeds of what every seed has.
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

/// The mean over repeats; `None` unless each has the bound.
fn mean_bound(each: impl Iterator<Item = Option<Bound>>) -> Option<Bound> {
    let each: Vec<Bound> = each.collect::<Option<_>>()?;
    let reached: Option<Vec<f64>> = each.iter().map(|bound| bound.reached).collect();
    let limits: Vec<f64> = each.iter().map(|bound| bound.limit).collect();
    Some(Bound { limit: mean(&limits)?, reached: reached.and_then(|reached| mean(&reached)) })
}
