//! From events to observations.

use std::collections::BTreeMap;

use super::event::{Event, Malformed};
use super::facts::Facts;
use super::folder::{Counts, Found};
use super::tags::{LONGEST_TAG, Tag};
use crate::names::Axis;
use crate::observation::{Observation, Phase};

/// More losses than these in one event are refused.
const MOST_LOSSES: usize = 256;

/// How far a tag has come.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Reached {
    axis: Axis,
    step: u64,
    /// The serial number of the file that said so.
    file: u32,
}

/// What is passed down while files are read.
pub(super) struct Reading<'a> {
    /// The data that the folder is about, by its name.
    pub(super) folder: Option<Phase>,
    /// The folder's path below the root.
    pub(super) run: &'a str,
    /// Bytes that may still be read.
    pub(super) budget: u64,
    /// Tags that may still be met for the first time.
    pub(super) room: usize,
    pub(super) counts: &'a mut Counts,
    pub(super) sink: &'a mut dyn FnMut(Found<'_>),
}

/// Turns the events of one file into observations.
pub(super) struct Teller<'a, 'b> {
    /// From which step on a later file tells the same anew.
    pub(super) superseded: BTreeMap<Axis, u64>,
    pub(super) tags: &'a mut BTreeMap<String, Reached>,
    pub(super) facts: &'a mut Facts,
    /// The serial number of the file.
    pub(super) serial: u32,
    pub(super) reading: &'a mut Reading<'b>,
}

impl Teller<'_, '_> {
    /// Takes one event, and gives what it says.
    pub(super) fn take(&mut self, event: Result<Event<'_>, Malformed>) {
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
        let mut told = BTreeMap::new();
        for scalar in event.scalars() {
            let Ok(scalar) = scalar else {
                self.reading.counts.malformed += 1;
                break;
            };
            let Some(tag) = Tag::new(scalar.tag, self.reading.folder) else { continue };
            if !self.admit(scalar.tag, tag, step) {
                continue;
            }
            let observation = told.entry(tag.axis).or_insert_with(|| Observation {
                at: Some(event.wall_time).filter(|at| *at > 0.0),
                step: step.filter(|_| tag.axis != Axis::Epochs),
                step_in_samples: tag.axis == Axis::Samples,
                epoch: step.filter(|_| tag.axis == Axis::Epochs).and_then(whole),
                ..Observation::default()
            });
            if observation.losses.len() < MOST_LOSSES {
                tag.enter(scalar.tag, scalar.value, observation);
            } else {
                self.reading.counts.tags_refused += 1;
            }
        }
        for mut observation in told.into_values() {
            self.facts.leave_out_copies(&mut observation);
            let rewound = std::mem::take(&mut self.facts.rewound);
            self.reading.counts.rewinds += u64::from(rewound);
            (self.reading.sink)(Found { run: self.reading.run, rewound, observation });
        }
    }

    /// Whether a value counts, and notes how far its tag has come.
    fn admit(&mut self, name: &str, tag: Tag, step: Option<u64>) -> bool {
        let axis = tag.axis;
        let reached = self.tags.get(name).copied();
        if reached.is_none() && (self.reading.room == 0 || name.len() > LONGEST_TAG) {
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

    /// All tags are back at `step`: the others' going back is the same restart.
    fn rewind(&mut self, axis: Axis, step: u64) {
        for tag in self.tags.values_mut().filter(|tag| tag.axis == axis && tag.step >= step) {
            *tag = Reached { axis, step, file: self.serial };
        }
    }
}

/// An epoch that came as a step.
fn whole(step: u64) -> Option<f64> {
    u32::try_from(step).ok().map(f64::from)
}
