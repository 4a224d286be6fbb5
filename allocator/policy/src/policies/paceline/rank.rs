//! Sort keys: a number and an index packed into one integer, which sorts faster than a pair.

/// A key with the order of the numbers, which must not be negative.
pub(super) fn key(x: f64) -> u64 {
    (x.max(0.0) + 0.0).to_bits()
}

/// A number and the index of its owner. Of equal numbers, the smaller index comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u128);

impl Rank {
    pub(super) fn new(x: f64, place: usize) -> Self {
        // An index fits into 64 bits on every platform.
        Self((u128::from(key(x)) << 64) | u128::try_from(place).unwrap_or(u128::MAX))
    }

    /// After all numbers.
    pub(super) fn last(place: usize) -> Self {
        Self((u128::from(u64::MAX) << 64) | u128::try_from(place).unwrap_or(u128::MAX))
    }

    /// All of these, sorted.
    pub(super) fn sorted(all: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut all: Vec<Self> = all.collect();
        all.sort_unstable();
        all
    }

    /// The number.
    pub(super) fn number(self) -> f64 {
        f64::from_bits(u64::try_from(self.0 >> 64).unwrap_or(u64::MAX))
    }

    /// The place.
    pub(super) fn place(self) -> usize {
        usize::try_from(self.0 & u128::from(u64::MAX)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_orders_by_number_then_by_place() {
        let mut all =
            [Rank::new(2.5, 0), Rank::new(0.0, 7), Rank::new(f64::INFINITY, 1), Rank::new(0.0, 3)];
        all.sort_unstable();
        assert_eq!(all.map(Rank::place), [3, 7, 0, 1]);
        let numbers = all.map(Rank::number).map(f64::to_bits);
        assert_eq!(numbers, [0.0, 0.0, 2.5, f64::INFINITY].map(f64::to_bits));
    }
}
