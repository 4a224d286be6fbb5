//! Prepares the losses for the fits.

use super::goal::Goal;
use super::noise::Noise;
use crate::signals::series::{Point, Series};

/// This first part of the run is omitted: it seldom follows the later curve.
const WARM_UP: f64 = 0.05;
/// A value further than this many standard deviations from its neighbours' median is clamped.
const SPIKE: f64 = 6.0;

/// The losses of a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datum {
    /// Its position: the present is 1.
    pub(crate) x: f64,
    /// Its mean above the target.
    pub(crate) y: f64,
    /// The inverse of its variance, times its recency.
    pub(crate) weight: f64,
    /// The weight of its position: the square of it.
    pub(crate) recency: f64,
}

/// The losses, without those of the warm-up and without spikes.
pub(crate) fn data(series: &Series, goal: &Goal, noise: &Noise) -> Vec<Datum> {
    let points = &series.points;
    let whole = points.iter().enumerate().filter(|(_, point)| point.x >= WARM_UP * series.end);
    whole
        .map(|(at, point)| {
            let around = points.get(at.saturating_sub(2)..(at + 3).min(points.len()));
            let median = median(around.unwrap_or_default());
            let deviation = noise.at(goal.sign * median) / point.count.sqrt();
            let y = point.y.max(median - SPIKE * deviation).min(median + SPIKE * deviation);
            let x = point.x / series.end;
            let recency = x * x;
            let weight = recency / (deviation * deviation);
            Datum { x, y: goal.sign * y - goal.target, weight, recency }
        })
        .collect()
}

/// The median of a few points. On a curve that falls evenly, it is the one in the middle.
fn median(points: &[Point]) -> f64 {
    let mut levels: Vec<f64> = points.iter().map(|point| point.y).collect();
    levels.sort_by(f64::total_cmp);
    levels.get(levels.len() / 2).copied().unwrap_or_default()
}
