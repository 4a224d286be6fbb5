//! Every arm simulated, and put beside what was measured.

use super::super::outcome::{
    ArmFacts, ArmFindings, Course, Figures, Ground, ORACLE, figures, job_figures, mean,
};
use super::fidelity::Fidelity;
use super::{Prediction, Predictor};

/// What the simulator says of each arm.
#[derive(Debug)]
pub(crate) struct Forecast {
    pub(crate) prediction: Prediction,
    /// Each arm's runs, one for each seed; none where it cannot be simulated.
    pub(crate) courses: Vec<Vec<Course>>,
}

impl Forecast {
    pub(crate) fn of(predictor: &Predictor, arms: &[ArmFacts], ground: &Ground) -> Self {
        let prediction = Prediction {
            why_not: None,
            from: Some(predictor.from.clone()),
            contention: predictor.fit.node.contention.ok(),
            background: predictor.fit.node.background.ok(),
            bounds: predictor.bounds(),
        };
        let courses = arms.iter().map(|arm| predictor.simulate(arm, ground)).collect();
        Self { prediction, courses }
    }

    /// Nothing can be said, and `why`.
    pub(crate) fn none(why: String) -> Self {
        let prediction = Prediction { why_not: Some(why), ..Prediction::default() };
        Self { prediction, courses: Vec::new() }
    }

    /// Writes predictions, distances to the bounds and what follows from them into the arms' figures.
    pub(crate) fn put_beside(&self, arms: &mut [ArmFindings]) {
        for (arm, courses) in arms.iter_mut().zip(&self.courses) {
            let whole: Vec<Figures> = courses.iter().map(|course| figures(course, None)).collect();
            for (name, figure) in &mut arm.figures {
                let Some(figure) = figure else { continue };
                figure.predicted = mean_of(&whole, name);
                let bound = self.prediction.bounds.get(name).filter(|bound| bound.limit > 0.0);
                figure.over_bound = bound.map(|bound| figure.measured.mean / bound.limit);
                // The oracle is the schedule that reaches the bound.
                if arm.facts.policy == ORACLE && name == "completion_mean" {
                    figure.predicted = bound.and_then(|bound| bound.reached);
                }
            }
            for (place, job) in arm.jobs.iter_mut().enumerate() {
                let each = courses.iter().map(|course| job_figures(course, place));
                let each: Vec<Figures> = each.collect();
                for (name, figure) in &mut job.figures {
                    if let Some(figure) = figure {
                        figure.predicted = mean_of(&each, name);
                    }
                }
            }
            arm.fidelity = Fidelity::all(arm);
        }
    }
}

/// The mean over the seeds of what every seed has.
fn mean_of(each: &[Figures], name: &str) -> Option<f64> {
    let values: Option<Vec<f64>> =
        each.iter().map(|its| its.get(name).copied().flatten()).collect();
    mean(&values?)
}
