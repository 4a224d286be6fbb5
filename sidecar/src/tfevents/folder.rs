//! All event files below a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::record::Met;
use super::run::Run;
use super::scan::{Scan, scan};
use super::teller::Reading;
use crate::names::phase_of_folder;
use crate::observation::Observation;

/// Bytes read in one poll, over all files; a record that is longer is read nevertheless.
const BUDGET: u64 = 128 * 1024;
/// Distinct tags of use, over all files.
const MOST_TAGS: usize = 1000;
const MOST_FILES: usize = 1000;
/// Between two scans for new files: at least this, and so much more for each entry seen.
const SCAN_PAUSE: Duration = Duration::from_secs(1);
const SCAN_PAUSE_PER_ENTRY: Duration = Duration::from_millis(1);
const LONGEST_SCAN_PAUSE: Duration = Duration::from_secs(30);

/// What one event says.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'a> {
    /// The folder that its file lies in, relative to the root.
    pub run: &'a str,
    /// The job was started again and has gone back to this step: what was told of this step and of
    /// later ones does not count any more.
    pub rewound: bool,
    /// What it says.
    pub observation: Observation,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether there is any event file.
    pub source_up: bool,
    /// How many files are there.
    pub files: usize,
    /// How many files or folders are there but cannot be read.
    pub unreadable: u64,
    /// How many files are given up, since a length in them is damaged.
    pub broken: usize,
    /// Whether there is more to read at once.
    pub more: bool,
}

/// What was met since the start or the resumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read.
    pub bytes: u64,
    /// Records read.
    pub records: Met,
    /// Events that are no events, or whose time is no number.
    pub malformed: u64,
    /// Values that a later file tells anew.
    pub superseded: u64,
    /// Times that the job went back.
    pub rewinds: u64,
    /// Values under tags of use, but beyond the number of tags that are followed.
    pub tags_refused: u64,
    /// Files beyond the number that is followed, counted anew in each scan.
    pub files_refused: u64,
    /// Files that were replaced by others of the same name.
    pub replaced: u64,
}

/// Follows the event files below a folder, from their start.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    since: u64,
    runs: BTreeMap<String, Run>,
    counts: Counts,
    unreadable: u64,
    next_scan: Option<Duration>,
}

/// How far a [`Folder`] has read, for one that goes on where it ended.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Saved(BTreeMap<String, Run>);

impl Folder {
    /// Follows the files below `root`, which need not be there yet, made at or after `since`, in
    /// Unix seconds: a folder of logs often holds those of earlier jobs. 0 takes all.
    pub fn new(root: impl Into<PathBuf>, since: u64) -> Self {
        Self::resume(root, since, Saved::default())
    }

    /// The same, going on from where another one was.
    pub fn resume(root: impl Into<PathBuf>, since: u64, saved: Saved) -> Self {
        Self {
            root: root.into(),
            since,
            runs: saved.0,
            counts: Counts::default(),
            unreadable: 0,
            next_scan: None,
        }
    }

    /// Reads on, a bounded amount, and gives what is found: folder by folder, and in each of them
    /// file by file. `now` is the time since any fixed moment. What cannot be read is counted, and
    /// tried again.
    pub fn poll(&mut self, now: Duration, sink: &mut dyn FnMut(Found<'_>)) -> Progress {
        if self.next_scan.is_none_or(|due| now >= due) {
            let pause = self.scan();
            self.next_scan = Some(now + pause);
        } else {
            self.look_at_newest();
        }
        let own_name = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let met: usize = self.runs.values().map(Run::tags).sum();
        let mut budget = BUDGET;
        let mut room = MOST_TAGS.saturating_sub(met);
        let mut more = false;
        for (path, run) in &mut self.runs {
            let last = path.rsplit('/').next().unwrap_or_default();
            let folder = phase_of_folder(if last.is_empty() { &own_name } else { last });
            let counts = &mut self.counts;
            let mut reading = Reading { folder, run: path, budget, room, counts, sink };
            more |= run.read(&mut reading);
            (budget, room) = (reading.budget, reading.room);
        }
        let there = || self.runs.values().flat_map(|run| &run.files).filter(|file| file.there);
        let files = there().count();
        let barred = there().filter(|file| file.unreadable).count();
        let unreadable = self.unreadable.saturating_add(u64::try_from(barred).unwrap_or(u64::MAX));
        let broken = there().filter(|file| file.place.broken).count();
        Progress { source_up: files > 0, files, unreadable, broken, more }
    }

    /// How far it has read.
    pub fn saved(&self) -> Saved {
        Saved(self.runs.clone())
    }

    /// What was met.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The folders that hold event files, to be watched for changes.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let newest = self.runs.values().filter_map(|run| run.files.last());
        newest.filter(|file| file.there).filter_map(|file| file.path.parent())
    }

    /// Looks for files, and says for how long that need not be done again.
    fn scan(&mut self) -> Duration {
        let Scan { mut files, entries, unreadable, .. } = scan(&self.root);
        self.unreadable = unreadable;
        self.each_file(|file| file.there = false);
        files.retain(|found| found.stamp == 0 || found.stamp >= self.since);
        let mut known: usize = self.runs.values().map(|run| run.files.len()).sum();
        // The newest first, so that they find room.
        files.sort_unstable_by(|a, b| b.stamp.cmp(&a.stamp).then_with(|| a.cmp(b)));
        for found in files {
            let run = self.runs.get(&found.folder);
            let is_known = run.is_some_and(|run| run.has(found.stamp, &found.name));
            if !is_known && known >= MOST_FILES {
                self.counts.files_refused += 1;
                continue;
            }
            known += usize::from(!is_known);
            let run = self.runs.entry(found.folder).or_default();
            let file = run.file(found.stamp, &found.name);
            file.path = found.path;
            file.there = true;
            file.look(found.size);
        }
        let pause = SCAN_PAUSE.saturating_add(SCAN_PAUSE_PER_ENTRY.saturating_mul(entries));
        pause.min(LONGEST_SCAN_PAUSE)
    }

    /// Only the newest file of a folder is likely to grow; the others are looked at in each scan.
    fn look_at_newest(&mut self) {
        for file in self.runs.values_mut().filter_map(|run| run.files.last_mut()) {
            if let Ok(metadata) = std::fs::metadata(&file.path) {
                file.look(metadata.len());
            }
        }
    }

    fn each_file(&mut self, change: impl Fn(&mut super::run::EventFile)) {
        self.runs.values_mut().flat_map(|run| &mut run.files).for_each(change);
    }
}

#[cfg(test)]
mod tests;
