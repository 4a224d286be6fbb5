use crate::unit::counter;

/// The exact mean of the values between two readings of a growing count and sum; `None` when there
/// were none.
pub fn mean_between(from: (u64, f64), to: (u64, f64)) -> Option<f64> {
    let came = to.0.checked_sub(from.0).filter(|came| *came > 0)?;
    Some((to.1 - from.1) / counter(came)).filter(|mean| mean.is_finite())
}
