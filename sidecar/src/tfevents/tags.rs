//! What the values under a tag are.

use crate::names::{self, Axis, Meaning};
use crate::observation::{Loss, Observation, Phase, Span};

/// A longer tag is refused.
pub(super) const LONGEST_TAG: usize = 256;

/// A tag whose values are of use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tag {
    /// What the values are.
    pub role: Role,
    /// What the steps of its events count.
    pub axis: Axis,
}

/// What the values under a tag are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// A loss.
    Loss(Phase, Span),
    /// The time of a batch, in units of which so many are a second.
    BatchTime(f64),
    /// Batches in a second.
    BatchRate,
    /// The epoch.
    Epoch,
}

impl Tag {
    /// What `tag` is in a file whose folder is about the data of `folder`; `None` if it is of no
    /// use. Keras gives the losses of training and of validation the same tag, in folders of their
    /// own.
    pub fn new(tag: &str, folder: Option<Phase>) -> Option<Self> {
        let role = match names::meaning(tag)? {
            Meaning::Loss { phase, span } => {
                let phase = phase.or(folder).unwrap_or(Phase::Train);
                let usual = if phase == Phase::Train { Span::Step } else { Span::Epoch };
                Role::Loss(phase, span.unwrap_or(usual))
            }
            Meaning::BatchTime { per_second } => Role::BatchTime(per_second),
            Meaning::BatchRate => Role::BatchRate,
            Meaning::Epoch => Role::Epoch,
            Meaning::Step
            | Meaning::Batch
            | Meaning::TotalSteps
            | Meaning::TotalEpochs
            | Meaning::WallTime => return None,
        };
        Some(Self { role, axis: names::axis(tag) })
    }

    /// Writes a value of this tag, which is called `name`, into an observation.
    pub fn enter(self, name: &str, value: f64, observation: &mut Observation) {
        let positive = || Some(value).filter(|value| value.is_finite() && *value > 0.0);
        match self.role {
            Role::Loss(phase, span) => {
                observation.losses.push(Loss { name: name.to_owned(), phase, span, value });
            }
            Role::BatchTime(per_second) => {
                observation.batch_seconds = positive().map(|value| value / per_second);
            }
            Role::BatchRate => observation.batch_seconds = positive().map(f64::recip),
            Role::Epoch => {
                observation.epoch = Some(value).filter(|v| v.is_finite() && *v >= 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_says_what_the_tag_does_not() {
        let loss = |tag, folder| Tag::new(tag, names::phase_of_folder(folder)).unwrap();
        let train = loss("epoch_loss", "train");
        assert_eq!(train.role, Role::Loss(Phase::Train, Span::Epoch));
        assert_eq!(train.axis, Axis::Epochs);
        let validation = Role::Loss(Phase::Validation, Span::Epoch);
        assert_eq!(loss("epoch_loss", "validation").role, validation);
        assert_eq!(loss("evaluation_loss_vs_iterations", "validation").role, validation);
        assert_eq!(loss("Loss", "Loss_val").role, validation);
        assert_eq!(loss("val_loss", "train").role, validation);
        let train = Role::Loss(Phase::Train, Span::Step);
        assert_eq!(loss("loss", "test_run").role, train);
        assert_eq!(loss("loss_metrics/global_avg_loss", "tb").role, train);
        assert_eq!(Tag::new("step", None), None);
    }

    #[test]
    fn values_are_entered_in_seconds() {
        let seconds = |tag, value| {
            let mut observation = Observation::default();
            Tag::new(tag, None).unwrap().enter(tag, value, &mut observation);
            observation.batch_seconds
        };
        assert_eq!(seconds("batch_latency_ms", 12.5), Some(0.0125));
        assert_eq!(seconds("batch_steps_per_second", 4.0), Some(0.25));
        assert_eq!(seconds("batch_time", f64::NAN), None);
        assert_eq!(seconds("batch_steps_per_second", 0.0), None);
    }
}
