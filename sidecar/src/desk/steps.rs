//! Where in the whole run a line is.

use crate::number::floor;
use crate::observation::Observation;

/// Counts steps of the whole run from what a source counts.
#[derive(Debug)]
pub(super) struct Steps {
    batch_size: Option<u64>,
    /// What the source calls the first epoch: 0 or 1.
    first_epoch: Option<f64>,
    /// The epoch that was told last.
    epoch: Option<f64>,
    /// How many there were before it.
    before: Option<u64>,
}

/// A place in the run; `None` for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Position {
    /// Steps since the start.
    pub(super) global: Option<u64>,
    /// How many there are to be.
    pub(super) total: Option<u64>,
    /// The epoch, counted from 1.
    pub(super) epoch: Option<u64>,
}

impl Steps {
    /// With the size of a batch, samples can be counted as steps.
    pub(super) fn new(batch_size: Option<u64>) -> Self {
        Self { batch_size, first_epoch: None, epoch: None, before: None }
    }

    /// Where `observation` is.
    pub(super) fn place(&mut self, observation: &Observation) -> Position {
        if let Some(epoch) = observation.epoch.filter(|epoch| epoch.is_finite() && *epoch >= 0.0)
            && self.epoch != Some(epoch)
        {
            // A run that goes on at a later epoch counts from 1, as most do.
            let first = *self.first_epoch.get_or_insert(if epoch < 1.0 { 0.0 } else { 1.0 });
            self.epoch = Some(epoch);
            self.before = floor(epoch - first);
        }
        let before = self.before;
        let batches = |count: u64| match self.batch_size {
            _ if !observation.step_in_samples => Some(count),
            Some(size) if size > 0 => Some(count.div_ceil(size)),
            _ => None,
        };
        let step = observation.step.and_then(batches);
        let total = observation.total_steps.and_then(batches);
        let (global, total) = if observation.step_in_epoch {
            let gone = |total: u64| before.unwrap_or(0).checked_mul(total);
            let global = match (step, total) {
                (Some(step), Some(total)) => gone(total).and_then(|gone| gone.checked_add(step)),
                // Without the length of an epoch, the first one can be counted.
                (Some(step), None) => Some(step).filter(|_| before == Some(0)),
                (None, _) => None,
            };
            let epochs = observation.total_epochs;
            (global, epochs.zip(total).and_then(|(epochs, total)| epochs.checked_mul(total)))
        } else {
            (step, total)
        };
        let epoch = observation.epoch.and(before).and_then(|before| before.checked_add(1));
        Position { global, total, epoch }
    }
}
