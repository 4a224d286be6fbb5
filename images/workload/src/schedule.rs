//! The steps of a run, and the epoch of each.

/// A run over a number of items, in batches, up to a number of steps. Steps and epochs are counted
/// from 1.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    items: usize,
    batch_size: usize,
    steps: u64,
}

impl Schedule {
    /// A run of this many epochs, unless a number of steps is given.
    pub fn new(items: usize, batch_size: usize, epochs: u64, steps: Option<u64>) -> Self {
        let unlimited = Self { items, batch_size, steps: u64::MAX };
        let steps = steps.unwrap_or_else(|| epochs.saturating_mul(unlimited.steps_per_epoch()));
        Self { steps, ..unlimited }
    }

    /// The steps of the whole run.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The items of an epoch.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The items of a batch, except for the last one of an epoch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// The steps of an epoch that is not cut short.
    pub fn steps_per_epoch(&self) -> u64 {
        let steps = self.items.div_ceil(self.batch_size).max(1);
        // No machine has more than 64 bits.
        u64::try_from(steps).unwrap_or(u64::MAX)
    }

    /// The epoch that a step is in.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step.saturating_sub(1) / self.steps_per_epoch() + 1
    }

    /// The batches of its epoch that come before a step's.
    pub fn batches_before(&self, step: u64) -> u64 {
        step.saturating_sub(1) % self.steps_per_epoch()
    }

    /// Whether an epoch ends with a step.
    pub fn ends_epoch(&self, step: u64) -> bool {
        step.is_multiple_of(self.steps_per_epoch())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_through_all_epochs() {
        let schedule = Schedule::new(95, 10, 3, None);
        assert_eq!((schedule.steps(), schedule.steps_per_epoch()), (30, 10));
        let places = [1, 10, 11, 30].map(|step| {
            (schedule.epoch_of(step), schedule.batches_before(step), schedule.ends_epoch(step))
        });
        assert_eq!(places, [(1, 0, false), (1, 9, true), (2, 0, false), (3, 9, true)]);
    }

    #[test]
    fn steps_take_precedence_over_epochs() {
        assert_eq!(Schedule::new(95, 10, 3, Some(7)).steps(), 7);
    }
}
