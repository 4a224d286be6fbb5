//! Follows all event files below a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_lines::names::phase_of_folder;
use paceline_lines::observation::Observation;

use super::emitter::Reading;
use super::record::Met;
use super::run::Run;
use super::scan::{Scan, scan};

/// Bytes per poll over all files; a longer record is still read.
const BUDGET: u64 = 128 * 1024;
/// Maximum number of distinct useful tags over all files. Those of the newest run come first.
const MAX_TAGS: usize = 1000;
/// Maximum number of known files. The newest come first.
const MAX_FILES: usize = 1000;
/// Interval between scans for new files: this, plus a time for each folder entry.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
const SCAN_INTERVAL_PER_ENTRY: Duration = Duration::from_millis(1);
const MAX_SCAN_INTERVAL: Duration = Duration::from_secs(30);

/// The observation of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'a> {
    /// The folder of its file, relative to the root.
    pub run: &'a str,
    /// The job was restarted and has gone back to this step: earlier values of this and later steps
    /// are obsolete.
    pub rewound: bool,
    /// The observation.
    pub observation: Observation,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether there is at least one event file.
    pub source_up: bool,
    /// The number of files.
    pub files: usize,
    /// The number of files and folders that cannot be read.
    pub unreadable: u64,
    /// The number of files that were abandoned because of a damaged length.
    pub broken: usize,
    /// The number of older files that are left out, because there are too many.
    pub left_out: usize,
    /// Whether more can be read immediately.
    pub more: bool,
}

/// Counts since the start or the resumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes read.
    pub bytes: u64,
    /// Records read.
    pub records: Met,
    /// Invalid events, including those with a time that is not finite.
    pub malformed: u64,
    /// Values that a later file repeats.
    pub superseded: u64,
    /// How often the job went back.
    pub rewinds: u64,
    /// Values of useful tags beyond the maximum number of tags.
    pub tags_refused: u64,
    /// Files that were replaced by others with the same name.
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
    left_out: usize,
    next_scan: Option<Duration>,
}

/// The read positions of a [`Folder`], from which another one can resume.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Saved(BTreeMap<String, Run>);

impl Folder {
    /// Follows the files below `root`, which need not exist yet. Only files created at or after
    /// `since` (Unix seconds) are read, because a log folder often contains those of earlier jobs.
    /// 0 reads all.
    pub fn new(root: impl Into<PathBuf>, since: u64) -> Self {
        Self::resume(root, since, Saved::default())
    }

    /// Like `new`, but resumes at saved positions.
    pub fn resume(root: impl Into<PathBuf>, since: u64, saved: Saved) -> Self {
        Self {
            root: root.into(),
            since,
            runs: saved.0,
            counts: Counts::default(),
            unreadable: 0,
            left_out: 0,
            next_scan: None,
        }
    }

    /// Reads on, a bounded amount, folder by folder and file by file. `now` is the time since any
    /// fixed moment. Unreadable files are counted and tried again.
    pub fn poll(&mut self, now: Duration, sink: &mut dyn FnMut(Found<'_>)) -> Progress {
        if self.next_scan.is_none_or(|due| now >= due) {
            let interval = self.scan();
            self.next_scan = Some(now + interval);
        } else {
            self.check_newest();
        }
        let own_name = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let newest = self.newest_run();
        let is_read = |path: &str| newest.as_deref().is_none_or(|newest| is_within(path, newest));
        let read = self.runs.iter().filter(|(path, _)| is_read(path));
        let met: usize = read.map(|(_, run)| run.tags()).sum();
        let mut budget = BUDGET;
        let mut room = MAX_TAGS.saturating_sub(met);
        let mut more = false;
        for (path, run) in self.runs.iter_mut().filter(|(path, _)| is_read(path)) {
            let last = path.rsplit('/').next().unwrap_or_default();
            let folder = phase_of_folder(if last.is_empty() { &own_name } else { last });
            let counts = &mut self.counts;
            let mut reading = Reading { folder, run: path, budget, room, counts, sink };
            more |= run.read(&mut reading);
            (budget, room) = (reading.budget, reading.room);
        }
        for (_, run) in self.runs.iter_mut().filter(|(path, _)| !is_read(path)) {
            match room.checked_sub(run.tags()) {
                Some(left) => room = left,
                None => run.forget_tags(),
            }
        }
        let there = || self.runs.values().flat_map(|run| &run.files).filter(|file| file.there);
        let files = there().count();
        let barred = there().filter(|file| file.unreadable).count();
        let unreadable = self.unreadable.saturating_add(u64::try_from(barred).unwrap_or(u64::MAX));
        let broken = there().filter(|file| file.place.broken).count();
        let left_out = self.left_out;
        Progress { source_up: files > 0, files, unreadable, broken, left_out, more }
    }

    /// The read positions.
    pub fn saved(&self) -> Saved {
        Saved(self.runs.clone())
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The folders of the newest event files, to be watched for changes.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let newest = self.runs.values().filter_map(|run| run.files.last());
        newest.filter(|file| file.there).filter_map(|file| file.path.parent())
    }

    /// The folder of the run that began last. Folders for training and validation form one run with
    /// the folder around them, and so do folders below one with event files.
    fn newest_run(&self) -> Option<String> {
        let has_files = |path: &str| {
            self.runs.get(path).is_some_and(|run| run.files.iter().any(|file| file.there))
        };
        let run_of = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let around = ends.filter_map(|end| path.get(..end));
            if let Some(outer) = std::iter::once("").chain(around).find(|outer| has_files(outer)) {
                let (parent, last) = outer.rsplit_once('/').unwrap_or(("", outer));
                let of_data = !outer.is_empty() && phase_of_folder(last).is_some();
                return if of_data { parent.to_owned() } else { outer.to_owned() };
            }
            path.to_owned()
        };
        let there = self.runs.iter().filter_map(|(path, run)| {
            let stamps = run.files.iter().filter(|file| file.there).map(|file| file.stamp);
            Some((stamps.max()?, path))
        });
        there.max().map(|(_, path)| run_of(path))
    }

    /// Scans for files. Returns the time until the next scan.
    fn scan(&mut self) -> Duration {
        let Scan { mut files, entries, unreadable, .. } = scan(&self.root);
        self.unreadable = unreadable;
        self.each_file(|file| file.there = false);
        files.retain(|found| found.stamp == 0 || found.stamp >= self.since);
        // The newest first, so that they come within the limit.
        files.sort_unstable_by(|a, b| b.stamp.cmp(&a.stamp).then_with(|| a.cmp(b)));
        self.left_out = files.len().saturating_sub(MAX_FILES);
        files.truncate(MAX_FILES);
        for found in files {
            let run = self.runs.entry(found.folder).or_default();
            let file = run.file(found.stamp, &found.name);
            file.path = found.path;
            file.there = true;
            file.note_size(found.size);
        }
        self.forget_files();
        let interval =
            SCAN_INTERVAL.saturating_add(SCAN_INTERVAL_PER_ENTRY.saturating_mul(entries));
        interval.min(MAX_SCAN_INTERVAL)
    }

    /// Forgets the oldest of the files that are gone or left out, as far as there are too many, so
    /// that a new one always has a place.
    fn forget_files(&mut self) {
        let known: usize = self.runs.values().map(|run| run.files.len()).sum();
        let excess = known.saturating_sub(MAX_FILES);
        if excess == 0 {
            return;
        }
        let mut gone = Vec::new();
        for (path, run) in &self.runs {
            let files = run.files.iter().filter(|file| !file.there);
            gone.extend(files.map(|file| (file.stamp, path.clone(), file.name.clone())));
        }
        gone.sort_unstable();
        for (stamp, path, name) in gone.into_iter().take(excess) {
            if let Some(run) = self.runs.get_mut(&path) {
                run.files.retain(|file| file.stamp != stamp || file.name != name);
            }
        }
        self.runs.retain(|_, run| !run.files.is_empty());
    }

    /// Only the newest file of a folder is likely to grow; the others are checked in each scan.
    fn check_newest(&mut self) {
        for file in self.runs.values_mut().filter_map(|run| run.files.last_mut()) {
            if let Ok(metadata) = std::fs::metadata(&file.path) {
                file.note_size(metadata.len());
            }
        }
    }

    fn each_file(&mut self, change: impl Fn(&mut super::run::EventFile)) {
        self.runs.values_mut().flat_map(|run| &mut run.files).for_each(change);
    }
}

/// Whether the folder at `path` is `outer` or below it.
fn is_within(path: &str, outer: &str) -> bool {
    outer.is_empty()
        || path == outer
        || path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
