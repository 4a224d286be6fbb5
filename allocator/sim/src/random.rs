//! Randomness that follows from a seed. Each job and purpose has its own stream, so adding or
//! removing a job does not change the others.

use std::f64::consts::TAU;

use paceline_policy::unit::counter;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// When a group's jobs arrive, with one stream for each group.
    Arrival,
    /// How much work a job has.
    Work,
    /// The noise of its loss.
    Noise,
    /// What its moves cost.
    Checkpoint,
    /// Its targets, where they are drawn.
    Target,
    /// When it crashes.
    Crash,
    /// When a node fails, with one stream for each node.
    Failure,
    /// The deviations of its batch durations.
    Duration,
}

/// The number of purposes in the numbering of streams.
const PURPOSES: u64 = 8;

/// 2⁻⁵³: from 53 random bits to a number from 0 to 1.
const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of item number `index` for `purpose`.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let index = u64::try_from(index).unwrap_or(u64::MAX / PURPOSES);
        random.set_stream(index.wrapping_mul(PURPOSES) + purpose.number());
        Self(random)
    }

    /// Uniform, from 0 (included) to 1 (not included).
    pub(crate) fn uniform(&mut self) -> f64 {
        counter(self.0.next_u64() >> 11) * UNIT
    }

    /// Uniform between two bounds.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Exponential of the given mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// Normal of mean 0 and deviation 1, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    /// Pareto: at least `least`, with a tail that falls as x^(−shape).
    pub(crate) fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        least * (1.0 - self.uniform()).powf(-1.0 / shape)
    }
}

/// A stream that is created when it is first drawn from. Streams are large, and most jobs use few
/// of them.
#[derive(Clone, Debug)]
pub(crate) struct LazyStream {
    seed: u64,
    purpose: Purpose,
    index: usize,
    stream: Option<Box<Stream>>,
}

impl LazyStream {
    /// The stream of [`Stream::new`].
    pub(crate) const fn new(seed: u64, purpose: Purpose, index: usize) -> Self {
        Self { seed, purpose, index, stream: None }
    }

    /// The stream at its present position.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        let begin = || Box::new(Stream::new(self.seed, self.purpose, self.index));
        self.stream.get_or_insert_with(begin)
    }
}

impl Purpose {
    const fn number(self) -> u64 {
        match self {
            Self::Arrival => 0,
            Self::Work => 1,
            Self::Noise => 2,
            Self::Checkpoint => 3,
            Self::Target => 4,
            Self::Crash => 5,
            Self::Failure => 6,
            Self::Duration => 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_policy::unit::count;

    const DRAWS: usize = 20_000;

    fn mean(draw: impl FnMut() -> f64) -> f64 {
        std::iter::repeat_with(draw).take(DRAWS).sum::<f64>() / count(DRAWS)
    }

    #[test]
    fn stream_depends_on_seed_purpose_and_number_only() {
        let first = |seed, purpose, index| Stream::new(seed, purpose, index).uniform().to_bits();
        assert_eq!(first(1, Purpose::Noise, 3), first(1, Purpose::Noise, 3));
        let all = [
            first(1, Purpose::Noise, 3),
            first(2, Purpose::Noise, 3),
            first(1, Purpose::Noise, 4),
            first(1, Purpose::Work, 3),
        ];
        for (at, bits) in all.iter().enumerate() {
            assert!(!all[..at].contains(bits), "{all:?}");
        }
    }

    #[test]
    fn a_lazy_stream_is_the_same_stream() {
        let mut lazy = LazyStream::new(3, Purpose::Crash, 5);
        let mut stream = Stream::new(3, Purpose::Crash, 5);
        for _ in 0..3 {
            assert_eq!(lazy.stream().uniform().to_bits(), stream.uniform().to_bits());
        }
    }

    #[test]
    fn draws_have_the_expected_means() {
        let mut stream = Stream::new(7, Purpose::Work, 0);
        assert!((mean(|| stream.uniform()) - 0.5).abs() < 0.01);
        assert!((mean(|| stream.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!(mean(|| stream.normal()).abs() < 0.03);
        assert!((mean(|| stream.normal().powi(2)) - 1.0).abs() < 0.05);
        assert!((mean(|| stream.pareto(1.0, 3.0)) - 1.5).abs() < 0.05, "shape/(shape − 1)");
        assert!((mean(|| stream.between(2.0, 4.0)) - 3.0).abs() < 0.05);
    }
}
