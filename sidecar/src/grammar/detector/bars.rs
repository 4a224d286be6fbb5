//! Bars below headings: whether they count the steps of an epoch or of the run, and which of them
//! belong to an evaluation.

use super::block::hold_out;
use super::heading::Heading;
use crate::grammar::{Reading, tqdm};
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

/// A frame and the line directly behind it, because some loggers do not end the line of a bar before their
/// own. A dict is read with the bar. Behind a bar of held-out data, a plain `loss` would pass for that of
/// the training, so such a line is not read.
#[inline]
pub(super) fn behind(text: &str) -> Option<(&str, &str)> {
    if text.ends_with(']') {
        return None;
    }
    let bytes = text.as_bytes();
    let times = memchr::memchr(b'<', bytes)?;
    let start = memchr::memrchr(b'[', bytes.get(..times)?)?;
    let mut depth = 0_u32;
    let end = memchr::memchr2_iter(b'[', b']', bytes.get(start..)?).find(|at| {
        match bytes.get(start + at) {
            Some(b'[') => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        depth == 0
    })?;
    let (bar, after) = text.split_at_checked(start + end + 1)?;
    let is_line = after.starts_with(|c: char| c.is_alphanumeric() || c == '[');
    (is_line && !tqdm::holds_out(bar)).then_some((bar, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_directly_behind_a_bar_is_found() {
        let bar = "fit: 10%|# | 1/10 [00:01<00:09, 1.00it/s]";
        let lists = "fit: 10%|# | 1/10 [00:01<00:09, 1.00it/s, lr=[0.5, 0.25]]";
        for (bar, line) in [(bar, "INFO step 5"), (lists, "2026-01-01 step 5"), (bar, "[x] step 5")]
        {
            assert_eq!(behind(&format!("{bar}{line}")), Some((bar, line)), "{line}");
        }
        for line in ["", " step 5", "{'a': 5}", ", step 5"] {
            assert_eq!(behind(&format!("{bar}{line}")), None, "{line}");
        }
        for desc in ["Eval", "Valid Epoch 1", "Epoch 1 [valid]", "Testing"] {
            let bar = bar.replace("fit", desc);
            assert_eq!(behind(&format!("{bar}Epoch 1 loss: 0.5")), None, "{desc}");
        }
        for text in ["a < b", "[0 < 1", "", "step 5] x"] {
            assert_eq!(behind(text), None, "{text}");
        }
    }
}
