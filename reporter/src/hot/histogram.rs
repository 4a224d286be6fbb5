//! Durations of batches: counts in buckets fine enough for percentiles.
//!
//! Every decade from 1 µs on is cut into equal steps of 1/40 of its lower end. So a bucket is at
//! most 2.5 % wide, and its middle is at most 1.25 % off. The steps are decimal, so that the round
//! bounds of the Prometheus histogram are bounds here, too, and its counts are exact.

use std::iter::once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps per lower end of a decade.
const STEPS: u64 = 40;
/// Buckets of one decade: from 1 to 10 times its lower end.
const PER_DECADE: u64 = 9 * STEPS;
/// The lowest decade begins at 1 µs, in nanoseconds; a quicker batch counts as this.
const LOWEST: u64 = 1_000;
/// Decades from 1 µs to 1000 s, so that 10 min lie within.
const DECADES: u32 = 9;
/// The longest duration, in nanoseconds; a longer batch counts as this.
const MAX_NANOS: u64 = LOWEST * 10_u64.pow(DECADES);

/// Counts of durations; any thread may record while another reads.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Histogram {
    /// An empty histogram.
    pub(crate) fn new() -> Self {
        let buckets = 1 + u64::from(DECADES) * PER_DECADE;
        Self { buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts one duration, in nanoseconds.
    pub(crate) fn record(&self, nanos: u64) {
        if let Some(bucket) = self.buckets.get(index(nanos)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same for one thread at a time, at a third of the cost.
    pub(crate) fn record_alone(&self, nanos: u64) {
        if let Some(bucket) = self.buckets.get(index(nanos)) {
            bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The counts at this moment.
    pub(crate) fn counts(&self) -> Counts {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        Counts { buckets, seconds: 0.0 }
    }
}

/// The counts of a [`Histogram`] at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    buckets: Box<[u64]>,
    /// The sum of all durations, which the one who counts them keeps.
    pub(crate) seconds: f64,
}

impl Counts {
    /// The counts of both.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.seconds += other.seconds;
        self
    }

    /// How many durations there are.
    pub(crate) fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The duration that `percent` of all do not exceed, in seconds.
    pub(crate) fn percentile(&self, percent: u32) -> Option<f64> {
        let rank = (u128::from(self.total()) * u128::from(percent)).div_ceil(100).max(1);
        self.cumulative()
            .find(|(_, below)| u128::from(*below) >= rank)
            .map(|((lower, upper), _)| Duration::from_nanos(u64::midpoint(lower, upper)))
            .map(|middle| middle.as_secs_f64())
    }

    /// How many durations are at most `nanos`: exact if that is the bound of a bucket.
    pub(crate) fn at_most(&self, nanos: u64) -> u64 {
        self.buckets.iter().take(index(nanos) + 1).sum()
    }

    /// The counts without those of `earlier`.
    #[cfg(feature = "page")]
    pub(crate) fn without(&self, earlier: &Self) -> Self {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let buckets = pairs.map(|(now, before)| now.saturating_sub(*before)).collect();
        Self { buckets, seconds: self.seconds - earlier.seconds }
    }

    /// The durations since `earlier`: the middle of each bucket in seconds, and the count.
    #[cfg(feature = "metrics")]
    pub(crate) fn since(&self, earlier: Option<&Self>) -> impl Iterator<Item = (f64, u64)> {
        let before =
            move |at| earlier.and_then(|earlier| earlier.buckets.get(at).copied()).unwrap_or(0);
        bounds().zip(&self.buckets).enumerate().filter_map(move |(at, ((lower, upper), count))| {
            let new = count.saturating_sub(before(at));
            let middle = Duration::from_nanos(u64::midpoint(lower, upper)).as_secs_f64();
            (new > 0).then_some((middle, new))
        })
    }

    /// Each bucket's bounds with how many durations lie in it or below.
    fn cumulative(&self) -> impl Iterator<Item = ((u64, u64), u64)> {
        bounds().zip(&self.buckets).scan(0_u64, |below, (bounds, count)| {
            *below = below.saturating_add(*count);
            Some((bounds, *below))
        })
    }
}

/// The bucket of a duration. Buckets include their upper bound but not their lower one.
///
/// Each decade has a line of its own, so that all divisions are by constants, at a tenth of the cost.
fn index(nanos: u64) -> usize {
    const fn within<const LOWER: u64, const DECADE: u64>(inside: u64) -> u64 {
        1 + PER_DECADE * DECADE + (inside - LOWER) / (LOWER / STEPS)
    }
    let inside = nanos.min(MAX_NANOS).saturating_sub(1);
    let index = match inside {
        0..1_000 => 0,
        1_000..10_000 => within::<1_000, 0>(inside),
        10_000..100_000 => within::<10_000, 1>(inside),
        100_000..1_000_000 => within::<100_000, 2>(inside),
        1_000_000..10_000_000 => within::<1_000_000, 3>(inside),
        10_000_000..100_000_000 => within::<10_000_000, 4>(inside),
        100_000_000..1_000_000_000 => within::<100_000_000, 5>(inside),
        1_000_000_000..10_000_000_000 => within::<1_000_000_000, 6>(inside),
        10_000_000_000..100_000_000_000 => within::<10_000_000_000, 7>(inside),
        _ => within::<100_000_000_000, 8>(inside),
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The lower and upper bound of every bucket in nanoseconds, in order.
fn bounds() -> impl Iterator<Item = (u64, u64)> {
    let decades = (0..DECADES).flat_map(|decade| {
        let lower = LOWEST * 10_u64.pow(decade);
        let step = lower / STEPS;
        (0..PER_DECADE).map(move |at| (lower + at * step, lower + (at + 1) * step))
    });
    once((LOWEST, LOWEST)).chain(decades)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn counts_of(durations: &[u64]) -> Counts {
        let histogram = Histogram::new();
        for nanos in durations {
            histogram.record(*nanos);
        }
        histogram.counts()
    }

    proptest! {
        /// Drawn by exponent, so that every decade from 1 µs to 10 min has its share.
        #[test]
        fn a_percentile_is_at_most_two_percent_off(exponent in 3.0..11.778_f64) {
            let seconds = 10_f64.powf(exponent) / 1e9;
            let nanos = u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap();
            let read = counts_of(&[nanos]).percentile(50).unwrap();
            prop_assert!((read - seconds).abs() <= 0.02 * seconds, "{seconds} reads as {read}");
        }

        #[test]
        fn a_duration_lies_within_the_bounds_of_its_bucket(nanos in LOWEST + 1..=MAX_NANOS) {
            let (lower, upper) = bounds().nth(index(nanos)).unwrap();
            prop_assert!(lower < nanos && nanos <= upper, "{nanos} in {lower}..={upper}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_at_most_two_percent_off() {
        for nanos in [1_000, 1_001, 10_000, 10_001, 600_000_000_000] {
            let seconds = Duration::from_nanos(nanos).as_secs_f64();
            let read = counts_of(&[nanos]).percentile(99).unwrap();
            assert!((read - seconds).abs() <= 0.02 * seconds, "{seconds} reads as {read}");
        }
    }

    #[test]
    fn out_of_range_value_counts_at_nearest_end() {
        assert_eq!(counts_of(&[0]).percentile(50), Some(1e-6));
        let longest = counts_of(&[u64::MAX]).percentile(50).unwrap();
        assert!((longest - 1e3).abs() <= 20.0, "{longest}");
    }

    #[test]
    fn percentiles_split_the_durations_by_rank() {
        let millis: Vec<u64> = (1..=100).map(|millis| millis * 1_000_000).collect();
        let counts = counts_of(&millis);
        for (percent, seconds) in [(50, 0.050), (95, 0.095), (99, 0.099), (100, 0.100)] {
            let read = counts.percentile(percent).unwrap();
            assert!((read - seconds).abs() <= 0.02 * seconds, "p{percent} reads as {read}");
        }
    }

    #[test]
    fn nothing_recorded_has_no_percentile() {
        assert_eq!((counts_of(&[]).percentile(50), counts_of(&[]).total()), (None, 0));
    }

    #[test]
    fn a_count_up_to_a_bound_holds_the_bound_and_nothing_above() {
        let counts = counts_of(&[2_499_999, 2_500_000, 2_500_001]);
        assert_eq!((counts.at_most(2_500_000), counts.total()), (2, 3));
    }
}
