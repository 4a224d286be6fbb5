//! Bars below headings: whether they count the steps of an epoch or of the run, and which of them
//! belong to an evaluation.

use super::block::hold_out;
use super::heading::Heading;
use crate::grammar::Reading;
use crate::observation::{Observation, Phase};

/// The bars of a log.
#[derive(Debug, Default)]
pub(super) struct Bars {
    /// The bar began below a heading.
    began: bool,
    /// The bar went on over a heading, so it counts the steps of the run.
    goes_on: bool,
    /// The epoch of the heading above the last frame, its step and its total.
    last: Option<(f64, u64, Option<u64>)>,
    /// There was a bar of the training, and the number that it counts up to.
    trained: bool,
    total: Option<u64>,
}

impl Bars {
    /// Takes a frame of a bar, which may be below a heading.
    pub(super) fn frame(
        &mut self,
        heading: Option<Heading>,
        reading: Reading,
        found: &mut Observation,
    ) {
        let Some(step) = found.step else { return };
        if matches!(reading, Reading::Bar { .. }) {
            if step == 0 {
                self.began = heading.is_some();
            }
            found.step_in_epoch |= self.began;
        }
        let Some(heading) = heading.filter(|_| found.epoch.is_none()) else { return };
        let total = found.total_steps;
        if let Some((epoch, last, last_total)) = self.last {
            let is_same = last_total == total;
            let is_later = is_same && heading.epoch > epoch && last > 0 && step > last;
            self.goes_on = (self.goes_on || is_later) && step >= last;
        }
        self.last = Some((heading.epoch, step, total));
        found.step_in_epoch &= !self.goes_on;
    }

    /// Takes a frame outside of evaluations.
    pub(super) fn trains(&mut self, found: &Observation) {
        let trains = found.losses.iter().any(|loss| loss.phase == Phase::Train);
        if trains && found.step.is_some() {
            (self.trained, self.total) = (true, found.total_steps);
        }
    }

    /// Takes a frame below a line such as `Validating`, and makes its losses those of held-out data.
    /// Returns `None` if its bar is the one of the training, which goes on; otherwise whether the
    /// frame has a mean of all the data.
    pub(super) fn held_out(&self, found: &mut Observation) -> Option<bool> {
        if found.step.is_some() && self.trained && self.total == found.total_steps {
            return None;
        }
        // A frame without a step has been recognised by its own words.
        let Some(step) = found.step else { return Some(!found.losses.is_empty()) };
        let is_last = found.total_steps == Some(step) && !found.losses.is_empty();
        found.losses.iter_mut().for_each(hold_out);
        (found.step, found.total_steps, found.batch_seconds) = (None, None, None);
        (found.step_in_epoch, found.step_in_samples) = (false, false);
        Some(is_last)
    }
}
