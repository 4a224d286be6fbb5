//! The deviations of a job's reports from its loss curve that are the same in each run.
//!
//! A job that shuffles by a seed trains on the same batches in each run, and some batches are
//! harder than others. A policy that compares means of a few batches sees this as noise, but it
//! occurs at the same places in all runs.

use paceline_policy::unit::count;

use crate::number::position;

/// A step function over the fractions of a job's work, 0 where it is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residuals {
    /// The cumulated sums of the parts at each border, from 0 at the first.
    sums: Vec<f64>,
}

impl Residuals {
    /// The residuals of equal parts of the work: the mean deviation in each part.
    pub fn new(parts: &[f64]) -> Self {
        let add = |sum: &mut f64, part: &f64| {
            *sum += part;
            Some(*sum)
        };
        let sums = parts.iter().scan(0.0, add);
        Self { sums: std::iter::once(0.0).chain(sums).collect() }
    }

    /// The mean between two fractions of the work.
    pub fn mean(&self, from: f64, to: f64) -> f64 {
        let parts = self.sums.len().saturating_sub(1);
        if parts == 0 || to <= from {
            return 0.0;
        }
        (self.up_to(to) - self.up_to(from)) / (count(parts) * (to - from))
    }

    /// The sum of the parts up to a fraction of the work.
    fn up_to(&self, fraction: f64) -> f64 {
        let parts = self.sums.len().saturating_sub(1);
        let place = fraction.clamp(0.0, 1.0) * count(parts);
        let whole = position(place);
        let sum = |at: usize| self.sums.get(at).copied();
        let before = sum(whole).unwrap_or_default();
        before + (place - count(whole)) * (sum(whole + 1).unwrap_or(before) - before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mean_covers_the_parts_between() {
        let residuals = Residuals::new(&[1.0, -3.0]);
        for (from, to, mean) in [(0.0, 0.5, 1.0), (0.25, 0.75, -1.0), (0.5, 1.0, -3.0)] {
            assert!((residuals.mean(from, to) - mean).abs() < 1e-12, "{from} {to}");
        }
        assert!(residuals.mean(0.3, 0.3).abs() < 1e-12 && residuals.mean(2.0, 3.0).abs() < 1e-12);
        assert!(Residuals::default().mean(0.0, 1.0).abs() < 1e-12);
        assert!(Residuals::new(&[]).mean(0.0, 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn mean_of_two_halves_is_the_whole_mean(
            parts in prop::collection::vec(-9.0..9.0_f64, 0..9), from in 0.0..1.0_f64, width in 0.01..0.5_f64,
        ) {
            let residuals = Residuals::new(&parts);
            let (middle, to) = (from + width, from + 2.0 * width);
            let halves = residuals.mean(from, middle) + residuals.mean(middle, to);
            prop_assert!((residuals.mean(from, to) - halves / 2.0).abs() < 1e-9);
        }
    }
}
