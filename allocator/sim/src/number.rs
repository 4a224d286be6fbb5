//! Sortable numbers, and the only casts of this crate.

use std::cmp::Ordering;

/// A number as a sort key, by its total order. This crate makes none from NaN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key(pub(crate) f64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The whole part of a number that is not negative.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is meant to"
)]
pub(crate) fn floor(x: f64) -> u64 {
    x as u64
}

/// The same, as a position in a list.
pub(crate) fn position(x: f64) -> usize {
    usize::try_from(floor(x)).unwrap_or(usize::MAX)
}
