//! The assignment of items to steps.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::schedule::Schedule;

/// The batches of a run. Each epoch has its own order, which follows from the seed alone.
#[derive(Debug)]
pub struct Shuffle {
    schedule: Schedule,
    seed: u64,
    /// The epoch of the current order; 0 at first.
    epoch: u64,
    order: Vec<i64>,
}

impl Shuffle {
    /// The batches of a run.
    pub fn new(schedule: Schedule, seed: u64) -> Self {
        Self { schedule, seed, epoch: 0, order: Vec::new() }
    }

    /// The positions of the items that are trained on in a step.
    pub fn batch(&mut self, step: u64) -> &[i64] {
        let epoch = self.schedule.epoch_of(step);
        if epoch != self.epoch {
            self.begin(epoch);
        }
        let batch = usize::try_from(self.schedule.batches_before(step)).unwrap_or(usize::MAX);
        self.order.chunks(self.schedule.batch_size()).nth(batch).unwrap_or_default()
    }

    fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        // Sorted first: the result of shuffling must not depend on the previous epochs.
        self.order = (0..).take(self.schedule.items()).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(epoch);
        self.order.shuffle(&mut random);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shuffle(items: usize, batch_size: usize, seed: u64) -> Shuffle {
        Shuffle::new(Schedule::new(items, batch_size, 3, None), seed)
    }

    /// The batches of an epoch.
    fn epoch(shuffle: &mut Shuffle, epoch: u64) -> Vec<Vec<i64>> {
        let steps = shuffle.schedule.steps_per_epoch();
        let first = (epoch - 1) * steps + 1;
        (first..first + steps).map(|step| shuffle.batch(step).to_vec()).collect()
    }

    proptest! {
        #[test]
        fn every_epoch_sees_every_item_once(
            items in 1_usize..200,
            batch_size in 1_usize..50,
            number in 1_u64..4,
            seed: u64,
        ) {
            let batches = epoch(&mut shuffle(items, batch_size, seed), number);
            let (last, full) = batches.split_last().unwrap();
            prop_assert!(full.iter().all(|batch| batch.len() == batch_size));
            prop_assert!((1..=batch_size).contains(&last.len()));
            let mut seen = batches.concat();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq((0..).take(items)));
        }

        #[test]
        fn batch_is_independent_of_previous_batches(step in 1_u64..60, seed: u64) {
            let mut through = shuffle(195, 10, seed);
            let all: Vec<_> = (1..=step).map(|step| through.batch(step).to_vec()).collect();
            let alone = shuffle(195, 10, seed).batch(step).to_vec();
            prop_assert_eq!(all.last(), Some(&alone));
        }
    }

    #[test]
    fn order_depends_on_seed_and_epoch() {
        let order = |seed, number| epoch(&mut shuffle(1000, 64, seed), number).concat();
        assert_eq!(order(1, 1), order(1, 1));
        assert_ne!(order(1, 1), order(2, 1));
        assert_ne!(order(1, 1), order(1, 2));
        assert_ne!(order(1, 1), (0..1000).collect::<Vec<_>>());
    }
}
