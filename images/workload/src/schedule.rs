//! Which images are trained on in which step.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// A run over shuffled images, in batches, until a number of steps is reached.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    images: usize,
    batch_size: usize,
    steps: u64,
    seed: u64,
}

impl Schedule {
    /// A run of so many epochs, unless a number of steps is given.
    pub fn new(
        images: usize,
        batch_size: usize,
        epochs: u64,
        steps: Option<u64>,
        seed: u64,
    ) -> Self {
        let unlimited = Self { images, batch_size, steps: u64::MAX, seed };
        let steps = steps.unwrap_or_else(|| epochs.saturating_mul(unlimited.steps_per_epoch()));
        Self { steps, ..unlimited }
    }

    /// The steps of the whole run.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The images of an epoch.
    pub fn images(&self) -> usize {
        self.images
    }

    /// The images of a batch, except for the last one of an epoch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// The steps of an epoch that is not cut short.
    pub fn steps_per_epoch(&self) -> u64 {
        count(self.images.div_ceil(self.batch_size))
    }

    /// The epochs that are at least begun.
    pub fn epochs(&self) -> u64 {
        self.steps.div_ceil(self.steps_per_epoch())
    }

    /// Whether an epoch, counted from 1, is run to its end.
    pub fn is_whole(&self, epoch: u64) -> bool {
        epoch.saturating_mul(self.steps_per_epoch()) <= self.steps
    }

    /// The batches of an epoch, counted from 1: each one the positions of its images.
    ///
    /// Each epoch has an order of its own that follows from the seed alone.
    pub fn batches(&self, epoch: u64) -> Vec<Vec<i64>> {
        let mut order: Vec<i64> = (0..).take(self.images).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(epoch);
        order.shuffle(&mut random);
        let before = epoch.saturating_sub(1) * self.steps_per_epoch();
        let left = self.steps.saturating_sub(before);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        order.chunks(self.batch_size).take(left).map(<[i64]>::to_vec).collect()
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).expect("no machine has more than 64 bits")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn epochs(images: usize, batch_size: usize, epochs: u64, seed: u64) -> Schedule {
        Schedule::new(images, batch_size, epochs, None, seed)
    }

    proptest! {
        #[test]
        fn every_epoch_sees_every_image_once(
            images in 1_usize..200,
            batch_size in 1_usize..50,
            epoch in 1_u64..4,
            seed: u64,
        ) {
            let batches = epochs(images, batch_size, 3, seed).batches(epoch);
            let (last, full) = batches.split_last().unwrap();
            prop_assert!(full.iter().all(|batch| batch.len() == batch_size));
            prop_assert!((1..=batch_size).contains(&last.len()));
            let mut seen = batches.concat();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq((0..).take(images)));
        }

        #[test]
        fn a_number_of_steps_is_taken_exactly(
            images in 1_usize..200,
            batch_size in 1_usize..50,
            steps in 1_u64..100,
        ) {
            let schedule = Schedule::new(images, batch_size, 1, Some(steps), 0);
            let taken = (1..=schedule.epochs()).map(|epoch| count(schedule.batches(epoch).len()));
            prop_assert_eq!(taken.sum::<u64>(), steps);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_or_epoch_another() {
        let order = |seed, epoch| epochs(1000, 64, 2, seed).batches(epoch);
        assert_eq!(order(1, 1), order(1, 1));
        assert_ne!(order(1, 1), order(2, 1));
        assert_ne!(order(1, 1), order(1, 2));
        let first: Vec<Vec<i64>> = order(1, 1);
        assert_ne!(first.concat(), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn an_epoch_that_is_cut_short_is_not_whole() {
        let schedule = Schedule::new(100, 10, 9, Some(25), 0);
        assert_eq!((schedule.steps(), schedule.epochs()), (25, 3));
        assert!(schedule.is_whole(2));
        assert!(!schedule.is_whole(3));
        assert_eq!(schedule.batches(3).len(), 5);
    }
}
