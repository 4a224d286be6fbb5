//! What one event file says of itself.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Event;
use super::tags::{LONGEST_TAG, Tag};
use crate::names::Axis;
use crate::observation::{Loss, Observation, Phase, Span};

/// Tags whose first step is remembered for each file.
const FIRSTS: usize = 16;
/// Evaluations that are remembered.
const MOST_EVALUATIONS: usize = 64;

/// What one event file says of itself.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Facts {
    /// The first step of each tag.
    pub(super) first: BTreeMap<String, (Axis, u64)>,
    /// The step from which on it says that it replaces what was told before.
    pub(super) start: Option<u64>,
    /// A restart was said, and no observation has come since.
    pub(super) rewound: bool,
    /// Losses of evaluations whose second copy, by epoch, has not come yet.
    evaluated: BTreeSet<u64>,
}

impl Facts {
    /// Takes note of an event that is only looked at.
    pub(super) fn preview(&mut self, event: &Event<'_>, folder: Option<Phase>) {
        let Ok(step) = u64::try_from(event.step) else { return };
        if event.starts {
            self.start.get_or_insert(step);
        }
        for scalar in event.scalars().flatten() {
            if let Some(tag) = Tag::new(scalar.tag, folder) {
                self.learn(scalar.tag, tag.axis, step);
            }
        }
    }

    /// Takes note of a step of a tag.
    pub(super) fn learn(&mut self, tag: &str, axis: Axis, step: u64) {
        if self.first.len() < FIRSTS && tag.len() <= LONGEST_TAG && !self.first.contains_key(tag) {
            self.first.insert(tag.to_owned(), (axis, step));
        }
    }

    /// From which step on, for each axis, `later` files tell the same story anew: those that share a
    /// tag with this one, or say so themselves.
    pub(super) fn superseded_by<'a>(
        &self,
        later: impl IntoIterator<Item = &'a Self>,
    ) -> BTreeMap<Axis, u64> {
        let mut superseded = BTreeMap::new();
        for file in later {
            let shared = file.first.iter().filter(|(tag, _)| self.first.contains_key(*tag));
            let start = file.start.map(|step| (Axis::Steps, step));
            for (axis, step) in shared.map(|(_, first)| *first).chain(start) {
                let from = superseded.entry(axis).or_insert(step);
                *from = step.min(*from);
            }
        }
        superseded
    }

    /// Leaves out the losses that were told before. Keras writes the loss of a validation twice: by
    /// iterations, and then by epoch.
    pub(super) fn leave_out_copies(&mut self, observation: &mut Observation) {
        let by_epoch = observation.step.is_none();
        observation.losses.retain(|loss: &Loss| {
            let of_evaluation = loss.phase == Phase::Validation && loss.span == Span::Epoch;
            if of_evaluation && by_epoch {
                return !self.evaluated.remove(&loss.value.to_bits());
            }
            if of_evaluation && loss.name.starts_with("evaluation_") {
                if self.evaluated.len() >= MOST_EVALUATIONS {
                    self.evaluated.clear();
                }
                self.evaluated.insert(loss.value.to_bits());
            }
            true
        });
    }
}
