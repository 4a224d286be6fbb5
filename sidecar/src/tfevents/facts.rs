//! Facts about one event file.

use std::collections::{BTreeMap, BTreeSet};

use paceline_lines::names::Axis;
use paceline_lines::observation::{Loss, Observation, Phase, Span};

use super::event::Event;
use super::tags::{MAX_TAG_LEN, Tag};

/// Maximum number of tags per file whose first step is remembered.
const FIRSTS: usize = 16;
/// Maximum number of remembered evaluations.
const MAX_EVALUATIONS: usize = 64;

/// Facts about one event file.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Facts {
    /// The first step of each tag.
    pub(super) first: BTreeMap<String, (Axis, u64)>,
    /// The step from which its session start replaces earlier values.
    pub(super) start: Option<u64>,
    /// A restart was found, and no observation has been reported since.
    pub(super) rewound: bool,
    /// Losses (as bits) of evaluations whose second copy, by epoch, has not been read yet.
    evaluated: BTreeSet<u64>,
}

impl Facts {
    /// Records the facts of an event that is read ahead.
    pub(super) fn preview(&mut self, event: &Event, folder: Option<Phase>) {
        let Ok(step) = u64::try_from(event.step) else { return };
        if event.starts {
            self.start.get_or_insert(step);
        }
        for scalar in &event.scalars {
            if let Some(tag) = Tag::new(&scalar.tag, folder) {
                self.learn(&scalar.tag, tag.axis, step);
            }
        }
    }

    /// Records the first step of a tag.
    pub(super) fn learn(&mut self, tag: &str, axis: Axis, step: u64) {
        if self.first.len() < FIRSTS && tag.len() <= MAX_TAG_LEN && !self.first.contains_key(tag) {
            self.first.insert(tag.to_owned(), (axis, step));
        }
    }

    /// For each axis, the step from which `later` files repeat this one. Those are the files that
    /// share a tag with it or begin with a session start.
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

    /// Removes the losses that were reported before. Keras writes the loss of a validation twice:
    /// by iterations, and then by epoch.
    pub(super) fn leave_out_copies(&mut self, observation: &mut Observation) {
        let by_epoch = observation.step.is_none();
        observation.losses.retain(|loss: &Loss| {
            let of_evaluation = loss.phase == Phase::Validation && loss.span == Span::Epoch;
            if of_evaluation && by_epoch {
                return !self.evaluated.remove(&loss.value.to_bits());
            }
            if of_evaluation && loss.name.starts_with("evaluation_") {
                if self.evaluated.len() >= MAX_EVALUATIONS {
                    self.evaluated.clear();
                }
                self.evaluated.insert(loss.value.to_bits());
            }
            true
        });
    }
}
