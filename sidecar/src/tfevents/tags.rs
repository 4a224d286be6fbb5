//! The meaning of the values of a tag.

use paceline_lines::names::{self, Axis, Meaning};
use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// Maximum length of a tag in bytes; a longer one is refused.
pub(super) const MAX_TAG_LEN: usize = 256;

/// A tag whose values are useful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tag {
    /// The meaning of the values.
    pub role: Role,
    /// The unit that the steps of its events count.
    pub axis: Axis,
}

/// The meaning of the values of a tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// A loss.
    Loss(Phase, Span),
    /// The time of a batch; holds the number of its units per second.
    BatchTime(f64),
    /// Batches per second.
    BatchRate,
    /// The epoch.
    Epoch,
}

impl Tag {
    /// The meaning of `tag` in a file whose folder is about the data of `folder`. `None` if it is
    /// not useful. Keras gives the losses of training and validation the same tag, in separate
    /// folders.
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
            | Meaning::WallTime
            | Meaning::Elapsed => return None,
        };
        Some(Self { role, axis: names::axis(tag) })
    }

    /// Writes a value of this tag, named `name`, into an observation.
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
    fn folder_gives_the_phase_that_the_tag_lacks() {
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
