//! Turns events into observations.

use std::collections::BTreeMap;

use paceline_lines::names::Axis;
use paceline_lines::observation::{Observation, Phase};

use super::event::{Event, Malformed};
use super::facts::Facts;
use super::folder::{Counts, Found};
use super::tags::{MAX_TAG_LEN, Tag};

/// Maximum number of losses in one event; further ones are refused.
const MAX_LOSSES: usize = 256;

/// The last step of a tag.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Reached {
    axis: Axis,
    step: u64,
    /// The serial number of the file with this step.
    file: u32,
}

/// The context of a read over all files.
pub(super) struct Reading<'a> {
    /// The phase that the folder's name gives.
    pub(super) folder: Option<Phase>,
    /// The folder's path below the root.
    pub(super) run: &'a str,
    /// The remaining bytes to read.
    pub(super) budget: u64,
    /// The remaining number of new tags.
    pub(super) room: usize,
    pub(super) counts: &'a mut Counts,
    pub(super) sink: &'a mut dyn FnMut(Found<'_>),
}

/// Turns the events of one file into observations.
pub(super) struct EventEmitter<'a, 'b> {
    /// The step of each axis from which a later file repeats the values.
    pub(super) superseded: BTreeMap<Axis, u64>,
    pub(super) tags: &'a mut BTreeMap<String, Reached>,
    pub(super) facts: &'a mut Facts,
    /// The serial number of the file.
    pub(super) serial: u32,
    pub(super) reading: &'a mut Reading<'b>,
}

impl EventEmitter<'_, '_> {
    /// Takes one event and passes its observations to the sink.
    pub(super) fn take(&mut self, event: Result<Event, Malformed>) {
        let Ok(event) = event else {
            self.reading.counts.malformed += 1;
            return;
        };
        let step = u64::try_from(event.step).ok();
        if let Some(step) = step.filter(|_| event.starts) {
            self.facts.start.get_or_insert(step);
            if self.tags.values().any(|tag| tag.axis == Axis::Steps && tag.step >= step) {
                self.rewind(Axis::Steps, step);
                self.facts.rewound = true;
            }
        }
        let mut observations = BTreeMap::new();
        for scalar in &event.scalars {
            let Some(tag) = Tag::new(&scalar.tag, self.reading.folder) else { continue };
            if !self.admit(&scalar.tag, tag, step) {
                continue;
            }
            let observation = observations.entry(tag.axis).or_insert_with(|| Observation {
                at: Some(event.wall_time).filter(|at| *at > 0.0),
                step: step.filter(|_| tag.axis != Axis::Epochs),
                step_in_samples: tag.axis == Axis::Samples,
                epoch: step.filter(|_| tag.axis == Axis::Epochs).and_then(whole),
                ..Observation::default()
            });
            if observation.losses.len() < MAX_LOSSES {
                tag.enter(&scalar.tag, scalar.value, observation);
            } else {
                self.reading.counts.tags_refused += 1;
            }
        }
        for mut observation in observations.into_values() {
            self.facts.leave_out_copies(&mut observation);
            let rewound = std::mem::take(&mut self.facts.rewound);
            self.reading.counts.rewinds += u64::from(rewound);
            (self.reading.sink)(Found { run: self.reading.run, rewound, observation });
        }
    }

    /// Returns whether a value is to be reported, and records the step of its tag.
    fn admit(&mut self, name: &str, tag: Tag, step: Option<u64>) -> bool {
        let axis = tag.axis;
        let reached = self.tags.get(name).copied();
        if reached.is_none() && (self.reading.room == 0 || name.len() > MAX_TAG_LEN) {
            self.reading.counts.tags_refused += 1;
            return false;
        }
        let Some(step) = step else { return true };
        self.facts.learn(name, axis, step);
        if self.superseded.get(&axis).is_some_and(|from| step >= *from) {
            self.reading.counts.superseded += 1;
            return false;
        }
        if let Some(last) = reached
            && (step < last.step || (step == last.step && last.file != self.serial))
        {
            self.rewind(axis, step);
            self.facts.rewound = true;
        }
        let now = Reached { axis, step, file: self.serial };
        if let Some(tag) = self.tags.get_mut(name) {
            *tag = now;
        } else {
            self.reading.room = self.reading.room.saturating_sub(1);
            self.tags.insert(name.to_owned(), now);
        }
        true
    }

    /// Sets all tags back to `step`, so that the same restart is not found again in other tags.
    fn rewind(&mut self, axis: Axis, step: u64) {
        for tag in self.tags.values_mut().filter(|tag| tag.axis == axis && tag.step >= step) {
            *tag = Reached { axis, step, file: self.serial };
        }
    }
}

/// An epoch that was given as a step.
fn whole(step: u64) -> Option<f64> {
    u32::try_from(step).ok().map(f64::from)
}
