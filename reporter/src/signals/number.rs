//! Numeric functions that the standard library lacks.

use std::f64::consts::FRAC_1_SQRT_2;

/// A count as a floating-point number: exact up to 2^53.
pub(crate) fn number(count: u64) -> f64 {
    let [high, low] = [count >> 32, count & u64::from(u32::MAX)]
        .map(|half| u32::try_from(half).map_or(0.0, f64::from));
    high * 4_294_967_296.0 + low
}

/// `value`, if it is a finite number.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The probability that a standard normal variable is at most `x`, to an absolute error of 10⁻⁷,
/// and of the right order of magnitude in the tails.
///
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26, as refined in Press et al.,
/// Numerical Recipes, `erfcc`.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let exponent = COEFFICIENTS.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = 0.5 * t * (exponent - z * z).exp();
    if x > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_numbers() {
        for (count, expected) in [
            (0, 0.0),
            (1, 1.0),
            (4_294_967_296, 4_294_967_296.0),
            (u64::MAX, 18_446_744_073_709_551_615.0),
        ] {
            assert_eq!(number(count).total_cmp(&expected), std::cmp::Ordering::Equal);
        }
    }

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (x, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-1.0, 0.158_655_254),
            (1.281_551_566, 0.9),
            (-1.959_963_985, 0.025),
            (-6.0, 9.865_876e-10),
        ] {
            let read = normal_cdf(x);
            assert!((read - expected).abs() < 1.5e-7, "{x}: {read}");
        }
        assert!((normal_cdf(-6.0) / 9.865_876e-10 - 1.0).abs() < 1e-5);
        assert_eq!((normal_cdf(f64::NEG_INFINITY), normal_cdf(f64::INFINITY)), (0.0, 1.0));
    }
}
