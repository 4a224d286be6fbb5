//! How likely the mean of a window reaches its target at a given level.

use super::goal::Goal;
use super::noise::Noise;
use crate::signals::number::normal_cdf;

/// How many levels are computed; values in between are interpolated.
const LEVELS: u32 = 128;
/// Bisections to find the level from which on the target is out of reach.
const BISECTIONS: u32 = 30;
/// A target this many standard deviations away is out of reach.
const OUT_OF_REACH: f64 = 6.0;
/// After this much hazard the target counts as reached for certain.
pub(crate) const CERTAIN: f64 = 30.0;

/// The hazard of one window, by the level above the target.
#[derive(Debug)]
pub(crate) struct Hazard {
    /// From this level on the hazard is 0.
    reach: f64,
    /// Its values at levels evenly spread from the target to there.
    table: Vec<f64>,
    per_level: f64,
}

impl Hazard {
    /// The hazard for levels up to `highest` above the target, and noise that is `times` the usual one.
    pub(crate) fn new(noise: &Noise, goal: &Goal, highest: f64, times: f64) -> Self {
        let times = times / goal.window.sqrt();
        let distance = |above: f64| noise.distance(goal.target + above, goal.target, times);
        let (mut reach, mut least) = (highest, 0.0);
        if distance(reach) > OUT_OF_REACH {
            for _ in 0..BISECTIONS {
                let middle = f64::midpoint(least, reach);
                let within = distance(middle) < OUT_OF_REACH;
                *(if within { &mut least } else { &mut reach }) = middle;
            }
        }
        let per_level = f64::from(LEVELS) / reach;
        let table = (0..=LEVELS)
            .map(|at| hazard(distance(f64::from(at) / per_level), goal.window))
            .collect();
        Self { reach, table, per_level }
    }

    /// The hazard at a level above the target.
    pub(crate) fn at(&self, level: f64) -> f64 {
        if level <= 0.0 {
            return CERTAIN;
        }
        if level >= self.reach {
            return 0.0;
        }
        let place = level * self.per_level;
        let whole = place.floor();
        let ends = index(whole).and_then(|at| self.table.get(at).zip(self.table.get(at + 1)));
        ends.map_or(0.0, |(lower, upper)| lower + (place - whole) * (upper - lower))
    }
}

/// The hazard over as many losses as a window holds. The windows overlap, so they are worth more
/// than one independent chance, but fewer than their number. The formula comes from a simulation
/// of 1500 passages for each of seven windows from 1 to 50, and is correct within a fifth.
fn hazard(distance: f64, window: f64) -> f64 {
    let overlap = 1.0 - 1.0 / window.sqrt();
    let chances = 1.0 + overlap * (0.6 + 1.25 * distance.max(0.0));
    -chances * normal_cdf(distance).ln()
}

/// A small whole number as an index: after adding 2^52, the low bits are the number.
fn index(whole: f64) -> Option<usize> {
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let small = (0.0..f64::from(LEVELS)).contains(&whole);
    small.then(|| (whole + SHIFT).to_bits() & 0xffff).and_then(|bits| usize::try_from(bits).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_become_indices() {
        assert_eq!([0.0, 1.0, 127.0].map(index), [Some(0), Some(1), Some(127)]);
        assert_eq!([-1.0, 128.0, f64::NAN, f64::INFINITY].map(index), [None; 4]);
    }

    #[test]
    fn a_window_of_one_loss_has_one_chance() {
        assert!((hazard(0.0, 1.0) - 2_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn the_farther_the_target_the_smaller_the_hazard() {
        for window in [1.0, 5.0, 100.0] {
            let hazards: Vec<f64> =
                (0..60).map(|at| hazard(f64::from(at) / 10.0, window)).collect();
            assert!(hazards.windows(2).all(|pair| pair[1] < pair[0]), "{window}: {hazards:?}");
        }
    }
}
