//! Reading the log back: its last entries, and those about one job.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::Path;

use super::files::{self, Lines, Piece};
use super::{Entry, Record};

/// The most that is given of one story, however often a limit was changed between two decisions.
const LONGEST_STORY: usize = 2000;

/// Whether there is a log in `folder`.
pub fn exists(folder: &Path) -> bool {
    files::all(folder).is_ok_and(|files| !files.is_empty())
}

/// The last `count` entries of the log in `folder`, oldest first. Lines that are no entries, or of
/// a kind that this version does not know, are passed over: [`super::verify`] tells of them.
pub fn last(folder: &Path, count: usize) -> io::Result<Vec<Record>> {
    let mut found = VecDeque::new();
    for (_, file) in files::all(folder)?.into_iter().rev() {
        let mut lines = Lines::of(file);
        let mut here = VecDeque::new();
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            here.push_back(line);
            if here.len() + found.len() > count {
                here.pop_front();
            }
        }
        let parsed = here.iter().filter_map(|line| serde_json::from_str(line).ok());
        let parsed: Vec<Record> = parsed.collect();
        parsed.into_iter().rev().for_each(|record| found.push_front(record));
        if found.len() >= count {
            break;
        }
    }
    Ok(found.into())
}

/// The last `decisions` decisions about a job, and all else that happened to it since the first of
/// them, oldest first. What happened to a job that no policy decided about is given as well.
pub fn story(folder: &Path, job: &str, decisions: usize) -> io::Result<Vec<Record>> {
    let mut story = VecDeque::new();
    let mut subject = Subject { names: BTreeSet::new(), texts: Vec::new() };
    subject.goes_by(job);
    for (_, file) in files::all(folder)? {
        let mut lines = Lines::of(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            // Most lines are about others: they are not worth being parsed.
            if !subject.texts.iter().any(|text| line.contains(text)) {
                continue;
            }
            let Ok(record) = serde_json::from_str::<Record>(&line) else { continue };
            if !subject.names.iter().any(|name| record.entry.is_about(name)) {
                continue;
            }
            // What is said of its container alone is about the job, too.
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

/// A job by all its names, and these as they stand in a line.
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
    while story.len() > LONGEST_STORY || story.iter().filter(|r| decided(r)).count() > decisions {
        story.pop_front();
    }
    // What came before the first decision that is told of belongs to one that is not.
    if story.iter().filter(|r| decided(r)).count() == decisions {
        while story.front().is_some_and(|record| !decided(record)) {
            story.pop_front();
        }
    }
}

/// The jobs that the log tells of, each once.
pub fn jobs(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut jobs = BTreeSet::new();
    for (_, file) in files::all(folder)? {
        let mut lines = Lines::of(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            if let Ok(record) = serde_json::from_str::<Record>(&line) {
                jobs.extend(record.entry.job().map(str::to_owned));
            }
        }
    }
    Ok(jobs)
}
