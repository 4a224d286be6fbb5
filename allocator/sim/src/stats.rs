//! Means and quantiles.

use paceline_policy::unit::count;

use crate::number::position;

/// The mean; `None` of an empty list.
pub(crate) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / count(numbers.len()))
}

/// The quantile, interpolated between two numbers; `None` if there are none.
pub(crate) fn quantile(mut numbers: Vec<f64>, part: f64) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let at = part * count(numbers.len().checked_sub(1)?);
    let low = *numbers.get(position(at))?;
    let high = numbers.get(position(at) + 1).copied().unwrap_or(low);
    Some(low + (high - low) * at.fract())
}
