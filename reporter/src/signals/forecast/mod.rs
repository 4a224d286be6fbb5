//! When a loss will reach a target: the acceptable loss or the objective.
//!
//! Curves of several shapes are fitted to the losses so far, each with a probability ([`fit`]). The
//! mean of the last few losses is noisy, so it reaches the target before the curve does, or even if
//! the curve never does. The forecast is the first step at which it does ([`passage`]); the pace
//! gives the time. It cannot foresee a change of the learning rate, or a curve that bends for the
//! first time.

mod data;
mod fit;
mod goal;
mod hazard;
mod noise;
mod passage;
mod shape;

use paceline_wire::{Forecast, ForecastSteps, Progress};

use self::fit::Fits;
use self::goal::Goal;
use self::noise::Noise;
use self::passage::Passage;
use super::pace::Pace;
use super::series::Series;

/// The fewest points for a forecast...
const POINTS: usize = 8;
/// ...and the fewest losses.
const LOSSES: f64 = 20.0;
/// The probabilities of `low`, the median and `high`.
const PARTS: [f64; 3] = [0.1, 0.5, 0.9];

/// When the mean loss will reach `target`; `None` with fewer than eight samples with a loss, or fewer
/// than twenty losses. In the forecast, more than a hundred times the steps so far are `None`.
pub(crate) fn forecast(
    target: f64,
    series: &Series,
    progress: &Progress,
    pace: &Pace,
) -> Option<Forecast> {
    let goal = Goal::new(target, progress, series)?;
    let steps = steps(series, &goal)?;
    let [low, seconds, high] = steps.map(|steps| steps.and_then(|steps| pace.seconds(steps)));
    let [fewest, median, most] = steps;
    let steps = Some(ForecastSteps { low: fewest, median, high: most });
    Some(Forecast { seconds, low, high, steps })
}

/// The quantiles of the steps until then, with the probabilities [`PARTS`].
fn steps(series: &Series, goal: &Goal) -> Option<[Option<f64>; 3]> {
    let losses = series.losses();
    if series.points.len() < POINTS || losses < LOSSES || series.end <= 0.0 {
        return None;
    }
    let noise = Noise::new(series, goal)?;
    let fits = Fits::new(&data::data(series, goal, &noise))?;
    // A bending trend increases the scatter, and a poor fit increases the residuals: the smaller
    // of the two is nearer to the noise.
    let noise = noise.with_variance(fits.variance.min(1.0));
    let passage = Passage::new(&fits, &noise, goal, goal.window / losses);
    Some(PARTS.map(|part| Some(passage.quantile(part)? * series.end)))
}

#[cfg(test)]
mod calibration;
#[cfg(test)]
mod fixtures;
