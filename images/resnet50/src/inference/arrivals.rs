//! The times of arrival of batches.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The endless arrivals of a Poisson process: the times between them are independent and
/// exponentially distributed.
#[derive(Debug)]
pub struct Arrivals {
    rate: f64,
    random: ChaCha8Rng,
    last: Duration,
}

impl Arrivals {
    /// With this mean number per second: a finite number above 0.
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { rate, random: ChaCha8Rng::seed_from_u64(seed), last: Duration::ZERO }
    }

    /// The time of the next arrival, since the start.
    pub fn next_time(&mut self) -> Duration {
        // Below 1, so that the logarithm is finite.
        let chance: f64 = self.random.random();
        let gap = -(1.0 - chance).ln() / self.rate;
        let gap = Duration::try_from_secs_f64(gap).unwrap_or(Duration::MAX);
        self.last = self.last.saturating_add(gap);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(rate: f64, seed: u64) -> Vec<f64> {
        let mut arrivals = Arrivals::new(rate, seed);
        let times: Vec<_> = (0..20_000).map(|_| arrivals.next_time()).collect();
        times.windows(2).map(|pair| (pair[1].saturating_sub(pair[0])).as_secs_f64()).collect()
    }

    #[test]
    fn arrivals_depend_on_seed() {
        assert_eq!(gaps(2.0, 7), gaps(2.0, 7));
        assert_ne!(gaps(2.0, 7), gaps(2.0, 8));
    }

    #[test]
    fn gaps_are_exponentially_distributed() {
        let gaps = gaps(4.0, 1);
        let count = 19_999.0;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        // Mean and deviation are both 1/4, and a part 1/e of all gaps is longer than that.
        assert!((mean - 0.25).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() - 0.25).abs() < 0.01, "{}", variance.sqrt());
        let longer = gaps.iter().map(|gap| f64::from(u8::from(*gap > 0.25))).sum::<f64>() / count;
        assert!((longer - (-1.0_f64).exp()).abs() < 0.02, "{longer}");
    }

    #[test]
    fn tiny_rate_does_not_overflow() {
        let mut arrivals = Arrivals::new(f64::MIN_POSITIVE, 1);
        assert!((0..10).all(|_| arrivals.next_time() > Duration::from_secs(1 << 40)));
    }
}
