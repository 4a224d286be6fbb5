//! When jobs arrive.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::Serialize;

use paceline_policy::unit::{count, counter};

/// 2⁻⁵³: from 53 random bits to a number from 0 to 1.
const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// How jobs arrive; all times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Arrivals {
    /// Each job has its own time.
    Fixed,
    /// All at once.
    Burst,
    /// One after the other, in the file's order.
    Every { gap: f64 },
    /// Each at a random time, uniformly distributed.
    Uniform { within: f64 },
    /// One after the other, in the file's order, with exponentially distributed gaps: a Poisson process
    /// that begins with the first job.
    Poisson { mean_gap: f64 },
}

impl Arrivals {
    /// Whether the times are random.
    pub(crate) fn is_random(self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::Poisson { .. })
    }

    /// The arrivals of `jobs` jobs, determined by the seed; `None` if each job has its own time.
    pub(super) fn draw(self, jobs: usize, seed: u64) -> Option<Vec<f64>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || counter(random.next_u64() >> 11) * UNIT;
        let times = match self {
            Self::Fixed => return None,
            Self::Burst => vec![0.0; jobs],
            Self::Every { gap } => (0..jobs).map(|at| gap * count(at)).collect(),
            Self::Uniform { within } => (0..jobs).map(|_| within * uniform()).collect(),
            Self::Poisson { mean_gap } => {
                let mut t = 0.0;
                let mut next = |at| {
                    t += if at == 0 { 0.0 } else { -mean_gap * (1.0 - uniform()).ln() };
                    t
                };
                (0..jobs).map(&mut next).collect()
            }
        };
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrivals_without_randomness_are_as_configured() {
        assert_eq!(Arrivals::Fixed.draw(3, 1), None);
        assert_eq!(Arrivals::Burst.draw(3, 1), Some(vec![0.0; 3]));
        assert_eq!(Arrivals::Every { gap: 2.5 }.draw(3, 1), Some(vec![0.0, 2.5, 5.0]));
    }

    #[test]
    fn poisson_gaps_have_the_given_mean() {
        let times = Arrivals::Poisson { mean_gap: 4.0 }.draw(20_001, 7).unwrap();
        let mean = times.last().unwrap() / 20_000.0;
        assert!((mean - 4.0).abs() < 0.1, "{mean}");
        assert!(times.is_sorted() && times[0] == 0.0);
    }

    proptest! {
        #[test]
        fn arrivals_depend_on_the_seed_only(seed: u64, jobs in 1_usize..40) {
            let arrivals = Arrivals::Uniform { within: 30.0 };
            let times = arrivals.draw(jobs, seed).unwrap();
            prop_assert!(times.iter().all(|t| (0.0..30.0).contains(t)));
            prop_assert_eq!(arrivals.draw(jobs, seed), Some(times.clone()));
            prop_assert_ne!(arrivals.draw(jobs, seed.wrapping_add(1)), Some(times));
        }
    }
}
