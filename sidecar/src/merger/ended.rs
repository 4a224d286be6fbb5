//! The length of an epoch, where only the line at its end tells it: `step 100 loss 0.5`, `step 200 loss 0.4`, and then
//! `epoch 1, steps 225, train loss 0.45, val loss 0.6`.

use paceline_lines::observation::{Observation, Phase};

/// What the lines of an epoch have shown.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The epoch and the step of the last line with only a loss of the training, and how far it went on.
    last: Option<(f64, u64, u64)>,
    length: Option<u64>,
}

impl Ended {
    /// Takes a line. One with a loss on held-out data ends the epoch if its step is not the next one of the others.
    pub(super) fn take(&mut self, found: &Observation) {
        let (Some(epoch), Some(step), None) = (found.epoch, found.step, found.total_steps) else {
            return;
        };
        if found.losses.iter().all(|loss| loss.phase != Phase::Train) {
            return;
        }
        let last = self.last.filter(|(of, ..)| of.total_cmp(&epoch).is_eq());
        if found.losses.iter().all(|loss| loss.phase == Phase::Train) {
            let stride = step.saturating_sub(last.map_or(0, |(_, last, _)| last));
            self.last = Some((epoch, step, stride));
        } else if let Some((_, last, stride)) = last {
            let beyond = step.checked_sub(last);
            let ends = beyond.is_some_and(|beyond| beyond == 0 || (stride > 0 && beyond < stride));
            self.length = Some(step).filter(|_| ends).or(self.length);
        }
    }

    /// The length of an epoch, if it is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use paceline_lines::observation::{Loss, Span};

    use super::super::testing::line;
    use super::*;

    fn length(lines: &[(u64, bool)]) -> Option<u64> {
        let mut ended = Ended::default();
        for (step, evaluates) in lines {
            let mut found = Observation { epoch: Some(1.0), ..line(*step, "loss") };
            let (name, phase, span) = ("val_loss".to_owned(), Phase::Validation, Span::Epoch);
            found.losses.extend(evaluates.then_some(Loss { name, phase, span, value: 0.5 }));
            ended.take(&found);
        }
        ended.length()
    }

    #[test]
    fn line_with_both_losses_ends_an_epoch_between_two_steps() {
        assert_eq!(length(&[(100, false), (200, false), (225, true)]), Some(225));
        assert_eq!(length(&[(100, false), (200, false), (200, true)]), Some(200));
        // An evaluation within the epoch.
        assert_eq!(length(&[(100, false), (200, false), (300, true)]), None);
        assert_eq!(length(&[(100, true), (200, true)]), None);
    }
}
