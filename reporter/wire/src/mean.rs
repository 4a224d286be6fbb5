//! The mean of the values between two readings of a growing count and its sum.

/// A mean of fewer grains of its sums than this has lost its second digit.
const FEWEST_GRAINS: f64 = 100.0;
/// A finer grain hides only values near 0. Since 0 is an ordinary loss, such a mean is taken as it is.
const FINE_GRAIN: f64 = 1e-3;

/// The mean of the values that came between two readings, each a count and a sum, such as
/// [`Eval::count`](crate::Eval::count) and [`Eval::sum`](crate::Eval::sum).
///
/// `None` if no value came, or if the sum has lost the digits of these values. A sum of 1e20 does not
/// change by a value below 8192, so two readings differ by 0 after it.
pub fn mean_between(from: (u64, f64), to: (u64, f64)) -> Option<f64> {
    let mean = quotient(from, to)?;
    let grain = grain(from.1, to.1);
    (grain < FINE_GRAIN || mean.abs() >= FEWEST_GRAINS * grain).then_some(mean)
}

/// The same for a reader that also knows the mean of the last few values, such as
/// [`Eval::value`](crate::Eval::value). It replaces a mean whose digits are lost.
///
/// It does not if it is too large for that: the value that spoilt the sum is then still among the last few.
pub fn mean_or_recent(from: (u64, f64), to: (u64, f64), recent: Option<f64>) -> Option<f64> {
    let mean = quotient(from, to)?;
    let least = FEWEST_GRAINS * grain(from.1, to.1);
    let is_lost = |value: f64| value.abs() < least;
    recent.filter(|recent| is_lost(mean) && is_lost(*recent)).or_else(|| mean_between(from, to))
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact up to 2^53 reports")]
fn quotient(from: (u64, f64), to: (u64, f64)) -> Option<f64> {
    let came = to.0.checked_sub(from.0).filter(|came| *came > 0)?;
    Some((to.1 - from.1) / came as f64).filter(|mean| mean.is_finite())
}

/// The error of one addition to these sums is below this.
fn grain(from: f64, to: f64) -> f64 {
    f64::EPSILON * from.abs().max(to.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_is_that_of_the_values_between_two_readings() {
        assert_eq!(mean_between((2, 7.0), (4, 8.0)), Some(0.5));
        assert_eq!(mean_or_recent((2, 7.0), (4, 8.0), Some(0.25)), Some(0.5));
        for (from, to) in [((2, 7.0), (2, 7.0)), ((4, 8.0), (2, 7.0)), ((0, 0.0), (1, f64::NAN))] {
            assert_eq!((mean_between(from, to), mean_or_recent(from, to, Some(1.0))), (None, None));
        }
    }

    #[test]
    fn sum_too_coarse_for_its_values_has_no_mean() {
        let (huge, later) = ((1, 1e20), (2, 1e20 + 0.5));
        assert_eq!(mean_between((0, 0.0), huge), Some(1e20));
        assert_eq!(mean_between(huge, later), None);
        assert_eq!(mean_or_recent(huge, later, None), None);
        // One digit is not enough.
        assert_eq!(mean_between((1, 1e15), (2, 1e15 + 0.7)), None);
        let two_digits = mean_between((1, 1e15), (2, 1e15 + 70.0));
        assert_eq!(two_digits, Some(70.0));
    }

    #[test]
    fn recent_mean_replaces_lost_digits_only() {
        let (huge, later) = ((1, 1e20), (9, 1e20 + 0.5));
        assert_eq!(mean_or_recent(huge, later, Some(0.5)), Some(0.5));
        assert_eq!(mean_or_recent(huge, later, Some(2e19)), None, "the huge one is in it");
        assert_eq!(mean_or_recent((0, 0.0), huge, Some(0.5)), Some(1e20));
    }

    #[test]
    fn losses_of_0_and_large_ordinary_ones_keep_their_mean() {
        for (from, to, mean) in [
            ((1_000, 5e3), (1_001, 5e3), 0.0),
            ((1_000, 1e12), (1_001, 1e12), 0.0),
            ((1_000_000, 1e16), (1_000_001, 1e16 + 1e10), 1e10),
            ((1_000_000_000, 2e9), (1_000_000_002, 2e9 + 1.0), 0.5),
        ] {
            for recent in [None, Some(0.3)] {
                let means = (mean_between(from, to), mean_or_recent(from, to, recent));
                assert_eq!(means, (Some(mean), Some(mean)), "{from:?} {to:?} {recent:?}");
            }
        }
    }
}
