//! How far a loss is from its trend, now and at later levels.

use super::goal::Goal;
use crate::signals::series::{Point, Series, usual};

/// The least noise, as a share of the largest loss.
const LEAST: f64 = 1e-12;
/// Steps before this part of the run are not used: a steep fall looks like noise.
const FROM: f64 = 0.3;
/// The independent share of each triple: neighbouring triples share two of their samples.
const OWN: f64 = 0.4;
/// How the standard deviation may depend on the level: not at all, by its root, in proportion.
const POWERS: [f64; 3] = [0.0, 0.5, 1.0];

/// The noise of one loss: its standard deviation is `scale · level^power`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    scale: f64,
    power: f64,
    positive: bool,
}

impl Noise {
    /// The noise of the losses so far; `None` if they are too few.
    ///
    /// The power is the mean of the possible ones, weighted by how well each explains the scatter.
    pub(crate) fn new(series: &Series, goal: &Goal) -> Option<Self> {
        let positive = goal.is_positive(series);
        let near: Vec<(f64, &Point)> = series
            .scattered(FROM)
            .map(|point| (if positive { point.y } else { 1.0 }, point))
            .collect();
        let triples: f64 = near.iter().map(|(_, point)| point.triples).sum();
        let scale = |power: f64| {
            let scaled: Vec<(f64, f64)> = near
                .iter()
                .map(|(level, point)| (point.scatter / level.powf(power), point.triples))
                .collect();
            usual(&scaled).map(|scale| scale.max(LEAST))
        };
        let (mut sum, mut total, mut first) = (0.0, 0.0, None);
        for power in POWERS {
            // The absolute values of the scatter are assumed to be exponential, which tolerates
            // outliers; this is the logarithm of their likelihood.
            let units: f64 = near.iter().map(|(level, point)| point.triples * level.ln()).sum();
            let fit = -OWN * (triples * scale(power)?.ln() + power * units);
            let weight = (fit - *first.get_or_insert(fit)).clamp(-500.0, 500.0).exp();
            sum += weight * power;
            total += weight;
        }
        let power = sum / total;
        Some(Self { scale: scale(power)?, power, positive })
    }

    /// The same noise with another variance.
    pub(crate) fn with_variance(self, times: f64) -> Self {
        Self { scale: (self.scale * times.sqrt()).max(LEAST), ..self }
    }

    /// The standard deviation of one loss at a level.
    pub(crate) fn at(&self, level: f64) -> f64 {
        let level = if self.positive { level.max(LEAST) } else { 1.0 };
        (self.scale * level.powf(self.power)).max(LEAST)
    }

    /// How many standard deviations `target` is below `level`, for noise that is `times` the usual one.
    ///
    /// A loss that cannot fall below 0 is assumed to have the gamma distribution, computed by the cube
    /// root of Wilson and Hilferty, The distribution of chi-square, PNAS 17 (1931).
    pub(crate) fn distance(&self, level: f64, target: f64, times: f64) -> f64 {
        let deviation = times * self.at(level);
        if self.positive && level > target {
            let third = deviation / level / 3.0;
            (1.0 - third * third - (target / level).cbrt()) / third
        } else {
            (level - target) / deviation
        }
    }
}
