//! When a loss will reach its objective.
//!
//! The losses so far are explained by curves of several shapes, each as likely as it fits
//! ([`fit`]). Along each of them, the mean of the last few losses is a noisy number that comes to
//! the objective before the curve does, or without it: what is forecast is the first time that it
//! does ([`passage`]). Nothing here foresees what the losses do not show: a change of the learning
//! rate, or a curve that bends for the first time.

mod data;
mod fit;
mod goal;
mod hazard;
mod noise;
mod passage;
mod shape;

use paceline_wire::{Forecast, Progress};

use self::fit::Fits;
use self::goal::Goal;
use self::noise::Noise;
use self::passage::Passage;
use super::pace::Pace;
use super::series::Series;

/// With fewer points, nothing is forecast...
const POINTS: usize = 8;
/// ...nor with fewer losses.
const LOSSES: f64 = 20.0;
/// The probabilities of `low`, `seconds` and `high`.
const PARTS: [f64; 3] = [0.1, 0.5, 0.9];

/// When the mean loss will reach the objective; `None` without one, once it is reached, and while
/// there is too little to go by: fewer than eight samples with a loss or twenty losses, or no pace.
/// Times beyond a hundred times the steps so far are `None` in it.
pub(crate) fn forecast(series: &Series, progress: &Progress, pace: &Pace) -> Option<Forecast> {
    let goal = Goal::new(progress, series)?;
    let [low, seconds, high] =
        steps(series, &goal)?.map(|steps| steps.and_then(|steps| pace.seconds(steps)));
    Some(Forecast { seconds, low, high, steps: None })
}

/// The steps until then, with the probabilities [`PARTS`].
fn steps(series: &Series, goal: &Goal) -> Option<[Option<f64>; 3]> {
    let losses = series.losses();
    if series.points.len() < POINTS || losses < LOSSES || series.end <= 0.0 {
        return None;
    }
    let noise = Noise::new(series, goal)?;
    let fits = Fits::new(&data::data(series, goal, &noise))?;
    // A trend that bends looks like scatter, and one that is not understood like residuals: the
    // smaller of the two is nearer to the noise.
    let noise = noise.with_variance(fits.variance.min(1.0));
    let passage = Passage::new(&fits, &noise, goal, goal.window / losses);
    Some(PARTS.map(|part| Some(passage.quantile(part)? * series.end)))
}

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod toys;
