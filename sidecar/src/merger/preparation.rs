//! A bar of a preparation, before the training: that of a data set that is read, or of flows that are computed. Its
//! step and its total are not those of the training.

use paceline_lines::observation::{Observation, Phase};

/// What is known of a bar without losses, before the first loss of the training.
#[derive(Debug, Default)]
pub(super) enum Preparation {
    /// No such bar so far.
    #[default]
    None,
    /// A bar, and no loss so far: how far it counts, and whether it is at its end.
    Bar { total: u64, ended: bool },
    /// After it, losses without a step. The bar may have been that of their epoch.
    Losses { epoch: Option<f64> },
    /// The training has begun, and what was before it is known.
    Over,
}

impl Preparation {
    /// Takes a line. Returns whether the bar before it was not one of the training, so that it is to be
    /// forgotten. `said`: the epoch so far.
    pub(super) fn is_over(&mut self, found: &Observation, said: Option<f64>) -> bool {
        if found.losses.is_empty() {
            if let (Some(step), Some(total)) = (found.step, found.total_steps) {
                // A bar that names its epoch from its first frame on is that of the training, and so is one below
                // losses. Another one may have an epoch because it has begun again.
                let trains = match self {
                    Self::None => found.epoch.is_some(),
                    Self::Bar { total: before, .. } => found.epoch.is_some() && total != *before,
                    Self::Losses { .. } | Self::Over => true,
                };
                let ended = step >= total;
                *self = if trains { Self::Over } else { Self::Bar { total, ended } };
            }
            return false;
        }
        if !found.losses.iter().any(|loss| loss.phase == Phase::Train) {
            return false;
        }
        match std::mem::replace(self, Self::Over) {
            Self::None | Self::Over => false,
            // The same bar, or a line beside it. Its passes before the first loss were of something else, if
            // only they were counted as epochs.
            Self::Bar { total, .. } if found.step.is_some() && found.total_steps == Some(total) => {
                found.epoch.is_none() && said.is_some()
            }
            Self::Bar { total, ended } if found.step.is_some() => {
                ended && found.step != Some(total)
            }
            Self::Bar { ended, .. } => {
                if ended {
                    *self = Self::Losses { epoch: found.epoch };
                }
                false
            }
            // Without a bar of its own, another epoch has passed.
            Self::Losses { epoch } => {
                let goes_on = found.epoch.is_some() && found.epoch > epoch;
                if !goes_on && found.step.is_none() {
                    *self = Self::Losses { epoch };
                }
                goes_on || found.step.is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::line;
    use super::*;

    fn bar(step: u64) -> Observation {
        Observation { step: Some(step), total_steps: Some(40), ..Observation::default() }
    }

    fn of_epoch(epoch: f64) -> Observation {
        Observation { step: None, epoch: Some(epoch), ..line(0, "loss") }
    }

    /// Whether the bar is forgotten at one of the lines.
    fn forgets(lines: &[Observation]) -> bool {
        let mut preparation = Preparation::default();
        lines.iter().any(|line| preparation.is_over(line, None))
    }

    #[test]
    fn bar_that_ended_before_other_counters_is_forgotten() {
        assert!(forgets(&[bar(0), bar(40), line(5, "loss")]));
        assert!(forgets(&[bar(40), of_epoch(1.0), of_epoch(2.0)]));
        assert!(forgets(&[bar(40), of_epoch(1.0), line(5, "loss")]));
    }

    #[test]
    fn bar_of_the_training_is_kept() {
        // It is not at its end, or the loss is its own.
        assert!(!forgets(&[bar(0), bar(30), line(30, "loss"), line(31, "loss")]));
        assert!(!forgets(&[bar(40), line(40, "loss"), line(41, "loss")]));
        // The loss of each epoch follows a bar.
        assert!(!forgets(&[bar(40), of_epoch(1.0), bar(0), bar(40), of_epoch(2.0)]));
        let named = Observation { epoch: Some(1.0), ..bar(40) };
        assert!(!forgets(&[named, line(5, "loss"), line(6, "loss")]));
        // Several losses of one epoch.
        assert!(!forgets(&[bar(40), of_epoch(1.0), of_epoch(1.0)]));
        assert!(!forgets(&[line(5, "loss"), bar(40), line(6, "loss")]));
    }

    #[test]
    fn passes_without_a_loss_are_forgotten_if_they_were_only_counted() {
        let own = Observation { total_steps: Some(40), ..line(1, "loss") };
        let forgets = |said, loss: &Observation| {
            let mut preparation = Preparation::default();
            !preparation.is_over(&bar(40), said) && preparation.is_over(loss, said)
        };
        assert!(forgets(Some(2.0), &own) && !forgets(None, &own));
        assert!(!forgets(Some(2.0), &Observation { epoch: Some(2.0), ..own }));
    }
}
