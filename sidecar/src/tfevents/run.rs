//! The event files of one folder. They form one run; each restart begins a new file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use paceline_lines::observation::Phase;

use super::emitter::{EventEmitter, Reached, Reading};
use super::event::{Event, Malformed};
use super::facts::Facts;
use super::file::{End, Place};
use super::record::Met;

/// Before an earlier file is read, later ones are read ahead in pieces of this size. At most
/// `PEEKS` pieces are searched for a useful tag.
const PEEK: u64 = 64 * 1024;
const PEEKS: u32 = 32;

/// A folder's files in the order of their creation, and the last step of each tag.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Run {
    pub(super) files: Vec<EventFile>,
    tags: BTreeMap<String, Reached>,
    serial: u32,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct EventFile {
    pub(super) stamp: u64,
    pub(super) name: String,
    serial: u32,
    pub(super) place: Place,
    facts: Facts,
    #[serde(skip)]
    pub(super) path: PathBuf,
    /// Whether there may be something to read.
    #[serde(skip)]
    pub(super) due: bool,
    #[serde(skip)]
    pub(super) there: bool,
    #[serde(skip)]
    pub(super) unreadable: bool,
    /// The number of pieces that were searched for a useful tag.
    #[serde(skip)]
    peeks: u32,
}

impl Run {
    /// The file with this name; adds it if it is new.
    pub(super) fn file(&mut self, stamp: u64, name: &str) -> &mut EventFile {
        let key = (stamp, name);
        let at = self.files.partition_point(|file| (file.stamp, file.name.as_str()) < key);
        let known = self.files.get(at).is_some_and(|f| f.stamp == stamp && f.name == name);
        if !known {
            self.serial += 1;
            let (serial, name) = (self.serial, name.to_owned());
            let file = EventFile { stamp, name, serial, ..EventFile::default() };
            self.files.insert(at, file);
        }
        self.files.get_mut(at).expect("it is there or was just inserted")
    }

    /// The number of known tags.
    pub(super) fn tags(&self) -> usize {
        self.tags.len()
    }

    /// Forgets all tags, and so how far each has come.
    pub(super) fn forget_tags(&mut self) {
        self.tags.clear();
    }

    /// Reads on in all files that are due, oldest first. Returns whether more is left.
    pub(super) fn read(&mut self, reading: &mut Reading<'_>) -> bool {
        for at in 0..self.files.len() {
            let (_, rest) = self.files.split_at_mut(at);
            let Some((file, later)) = rest.split_first_mut().filter(|(file, _)| file.due) else {
                continue;
            };
            if reading.budget == 0 {
                return true;
            }
            if !later.is_empty() {
                file.peek(reading.folder);
                for file in &mut *later {
                    file.peek(reading.folder);
                }
            }
            let mut emitter = EventEmitter {
                superseded: file.facts.superseded_by(later.iter().map(|file| &file.facts)),
                tags: &mut self.tags,
                facts: &mut file.facts,
                serial: file.serial,
                reading,
            };
            let mut budget = emitter.reading.budget;
            let before = budget;
            let mut met = Met::default();
            let end = file.place.read(&file.path, &mut budget, &mut met, &mut |e| emitter.take(e));
            reading.budget = budget;
            reading.counts.bytes += before - budget;
            reading.counts.records.add(met);
            file.unreadable = end.is_err();
            match end {
                Ok(End::File) | Err(_) => file.due = false,
                Ok(End::Budget) => return true,
                Ok(End::Replaced) => {
                    self.serial += 1;
                    file.serial = self.serial;
                    (file.place, file.facts) = Default::default();
                    reading.counts.replaced += 1;
                    return true;
                }
            }
        }
        false
    }
}

impl EventFile {
    /// Notes the current size of the file.
    pub(super) fn note_size(&mut self, size: u64) {
        self.due = size > 0 && size != self.place.offset;
    }

    /// Learns the first steps of a file by reading ahead.
    fn peek(&mut self, folder: Option<Phase>) {
        let mut place = self.place.clone();
        while self.facts.first.is_empty() && self.peeks < PEEKS {
            let mut learn = |event: Result<Event, Malformed>| {
                if let Ok(event) = event {
                    self.facts.preview(&event, folder);
                }
            };
            let mut budget = PEEK;
            // Errors are reported when the file itself is read.
            match place.read(&self.path, &mut budget, &mut Met::default(), &mut learn) {
                Ok(End::Budget) => self.peeks += 1,
                Ok(End::File | End::Replaced) | Err(_) => return,
            }
        }
    }
}
