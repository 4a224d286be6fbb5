//! Reading the log back: its last entries, and those about one job.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::Path;

use super::chain_head;
use super::files::{self, Lines, Piece};
use super::{Entry, Record};
use crate::state_folder::StateFolder;

/// The most entries of one job's history, however often a limit changed between two decisions.
const MAX_HISTORY: usize = 2000;

/// Whether there is a log in `folder`, or was one, as far as this user may look.
pub fn exists(folder: &Path) -> bool {
    try_exists(folder).unwrap_or(false)
}

/// The same. An error if this user may not look, or the log cannot be read.
pub fn try_exists(folder: &Path) -> io::Result<bool> {
    let Some(folder) = StateFolder::for_reading(folder)? else { return Ok(false) };
    let was_kept = folder.inode_and_length(chain_head::FILE)?.is_some();
    Ok(was_kept || !files::all(&folder)?.is_empty())
}

/// The folder of a log. A missing one is an error.
pub(super) fn open(folder: &Path) -> io::Result<StateFolder> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "the folder does not exist");
    StateFolder::for_reading(folder)?.ok_or_else(missing)
}

/// Whether some entry says that the log's head is kept.
pub(super) fn head_was_kept(folder: &StateFolder) -> io::Result<bool> {
    for (_, file) in files::all(folder)? {
        let mut lines = Lines::new(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            if line.contains("head-kept")
                && let Ok(record) = serde_json::from_str::<Record>(&line)
                && matches!(record.entry, Entry::HeadKept { .. })
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The last `count` entries of the log in `folder`, oldest first. Lines that are not entries, or
/// of a kind unknown to this version, are skipped: [`super::verify`] reports them.
pub fn last(folder: &Path, count: usize) -> io::Result<Vec<Record>> {
    Ok(last_and_others(folder, count)?.0)
}

/// The same, and how many lines beside them were skipped.
pub fn last_and_others(folder: &Path, count: usize) -> io::Result<(Vec<Record>, usize)> {
    let (mut found, mut others) = (VecDeque::new(), 0);
    for (_, file) in files::all(&open(folder)?)?.into_iter().rev() {
        let mut lines = Lines::new(file);
        let mut here = VecDeque::new();
        while let Some(piece) = lines.next()? {
            others += usize::from(matches!(piece, Piece::Garbled));
            let Piece::Line(line) = piece else { continue };
            here.push_back(line);
            if here.len() + found.len() > count {
                here.pop_front();
            }
        }
        let parsed = here.iter().filter_map(|line| serde_json::from_str(line).ok());
        let parsed: Vec<Record> = parsed.collect();
        others += here.len() - parsed.len();
        parsed.into_iter().rev().for_each(|record| found.push_front(record));
        if found.len() >= count {
            break;
        }
    }
    Ok((found.into(), others))
}

/// The last `decisions` decisions about a job, and all other entries about it since the first of
/// them, oldest first. A job without any decision has a history as well.
pub fn story(folder: &Path, job: &str, decisions: usize) -> io::Result<Vec<Record>> {
    let mut story = VecDeque::new();
    let mut subject = Subject { names: BTreeSet::new(), texts: Vec::new() };
    subject.goes_by(job);
    for (_, file) in files::all(&open(folder)?)? {
        let mut lines = Lines::new(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            // Most lines are about other jobs: do not parse them.
            if !subject.texts.iter().any(|text| line.contains(text)) {
                continue;
            }
            let Ok(record) = serde_json::from_str::<Record>(&line) else { continue };
            if !subject.names.iter().any(|name| record.entry.is_about(name)) {
                continue;
            }
            // Some entries name the container alone: they are about the job, too.
            if record.entry.job() == Some(job)
                && let Some(container) = record.entry.container()
            {
                subject.goes_by(container);
            }
            story.push_back(record);
            shorten(&mut story, decisions);
        }
    }
    Ok(story.into())
}

/// A job's names and those of its containers, also in the form in which a line holds them.
struct Subject {
    names: BTreeSet<String>,
    texts: Vec<String>,
}

impl Subject {
    fn goes_by(&mut self, name: &str) {
        if self.names.insert(name.to_owned()) {
            self.texts.extend(serde_json::to_string(name));
        }
    }
}

fn shorten(story: &mut VecDeque<Record>, decisions: usize) {
    let decided = |record: &Record| matches!(record.entry, Entry::Decided { .. });
    while story.len() > MAX_HISTORY || story.iter().filter(|r| decided(r)).count() > decisions {
        story.pop_front();
    }
    // Entries before the first decision of the history belong to an earlier decision.
    if story.iter().filter(|r| decided(r)).count() == decisions {
        while story.front().is_some_and(|record| !decided(record)) {
            story.pop_front();
        }
    }
}

/// The jobs that the log names, each once.
pub fn jobs(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut jobs = BTreeSet::new();
    for (_, file) in files::all(&open(folder)?)? {
        let mut lines = Lines::new(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            if let Ok(record) = serde_json::from_str::<Record>(&line) {
                jobs.extend(record.entry.job().map(str::to_owned));
            }
        }
    }
    Ok(jobs)
}
