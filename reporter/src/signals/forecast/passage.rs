//! When the mean of a window of noisy losses first reaches the target.

use super::fit::{Fit, Fits};
use super::goal::Goal;
use super::hazard::{CERTAIN, Hazard};
use super::noise::Noise;

/// Number of future times that are computed.
const TIMES: u32 = 56;
/// The last of them, in lengths of the run so far.
const FAR: f64 = 100.0;
/// The first of them, in the same unit, unless a window is shorter.
const NEAR: f64 = 0.01;

/// How much of the run so far is considered, and in how many parts.
const BACK: (f64, u32) = (0.6, 10);

/// The medians of equally likely parts of the standard normal distribution.
const SCORES: [f64; 17] = [
    -1.8895, -1.3517, -1.0491, -0.8208, -0.6289, -0.4579, -0.2993, -0.1480, 0.0, 0.1480, 0.2993,
    0.4579, 0.6289, 0.8208, 1.0491, 1.3517, 1.8895,
];
/// The same for the strength of the noise, whose logarithm has the standard deviation [`STRENGTH`].
const STRENGTHS: [f64; 5] = [-1.2816, -0.5244, 0.0, 0.5244, 1.2816];
/// See [`STRENGTHS`].
const STRENGTH: f64 = 0.15;

/// The probability that the target has been reached by some time.
#[derive(Debug)]
pub(crate) struct Passage {
    /// Times from now in lengths of the run so far, each with a probability.
    reached: Vec<(f64, f64)>,
}

impl Passage {
    /// Combines all fits. A window takes `length` lengths of the run so far.
    ///
    /// Level, size and strength of the noise are uncertain. They are drawn from the points of a
    /// lattice (Sloan and Joe, Lattice Methods for Multiple Integration, 1994), so the same losses
    /// always give the same forecast. A fit that would have reached the target by now gets a lower
    /// weight, since the target has not been reached.
    pub(crate) fn new(fits: &Fits, noise: &Noise, goal: &Goal, length: f64) -> Self {
        let first = length.min(NEAR);
        let growth = (FAR / first).ln() / f64::from(TIMES - 1);
        let times: Vec<f64> = (0..TIMES).map(|at| first * (growth * f64::from(at)).exp()).collect();
        let mut reached = vec![0.0; times.len()];

        let top = |fit: &Fit| fit.level + 3.0 * fit.spread.first().copied().unwrap_or_default();
        let highest = 1.2 * fits.fits.iter().map(top).fold(0.0, f64::max);
        let hazards =
            STRENGTHS.map(|score| Hazard::new(noise, goal, highest, (STRENGTH * score).exp()));

        let (back, parts) = BACK;
        let part = back / f64::from(parts);
        let mut total = 0.0;
        for Fit { shape, weight, level, size, spread: [a, b, c] } in &fits.fits {
            let to_come: Vec<f64> =
                times.iter().map(|time| shape.above_present(1.0 + time)).collect();
            let past: Vec<f64> = (0..parts)
                .map(|at| shape.above_present(1.0 - part * (f64::from(at) + 0.5)))
                .collect();
            for (node, score) in SCORES.iter().enumerate() {
                let other = lattice(&SCORES, 5 * node + 3);
                let (level, size) = (level + a * score, size + b * score + c * other);
                let Some(hazard) = hazards.get(3 * node % STRENGTHS.len()) else { continue };
                let at = |above: &f64| hazard.at(level + size * above);

                let spent: f64 = past.iter().map(at).sum::<f64>() * part / length;
                let weight = weight / (spent.min(CERTAIN)).exp();
                total += weight;
                let (mut before, mut spent, mut missed) = (0.0, 0.0, 1.0);
                for ((time, above), reached) in times.iter().zip(&to_come).zip(&mut reached) {
                    if spent < CERTAIN {
                        let more = at(above);
                        if more > 0.0 {
                            spent += (time - before) / length * more;
                            missed = (-spent).exp();
                        }
                    }
                    before = *time;
                    *reached += weight * (1.0 - missed);
                }
            }
        }
        let reached = times.iter().zip(reached).map(|(time, sum)| (*time, sum / total)).collect();
        Self { reached }
    }

    /// The time within which the target is reached with probability `part`; `None`: never.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let at = self.reached.partition_point(|(_, probability)| *probability < part);
        let (time, probability) = *self.reached.get(at)?;
        let Some((earlier, less)) = at.checked_sub(1).and_then(|at| self.reached.get(at)) else {
            return Some(time * (part / probability));
        };
        Some(earlier * (time / earlier).powf((part - less) / (probability - less)))
    }
}

/// The score of a lattice point in a further dimension.
fn lattice(scores: &[f64], at: usize) -> f64 {
    scores.get(at % scores.len()).copied().unwrap_or_default()
}
