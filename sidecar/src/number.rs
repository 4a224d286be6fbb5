//! Numbers of one kind as numbers of another.

/// A float that is a whole number from 0 on, as an integer.
pub(crate) fn whole(value: f64) -> Option<u64> {
    // Formatting is the way from a float to an integer that cannot be wrong.
    let is_whole = value.fract() == 0.0 && (0.0..1e15).contains(&value);
    is_whole.then(|| format!("{value:.0}").parse().ok()).flatten()
}
