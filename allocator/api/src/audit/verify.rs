//! Checks that the log was not altered: `paceline audit verify`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::chain_head::{self, ChainHead};
use super::entry::Since;
use super::files::{self, Lines, Piece};
use super::record::{self, Head, LineError, Link};
use super::{Entry, Record, read};
use crate::state_folder::StateFolder;

/// The most breaks that are described; further ones are only counted.
const MAX_DESCRIBED: usize = 20;

/// The result of checking the whole log.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// How many files it has.
    pub files: usize,
    /// How many entries.
    pub entries: u64,
    /// The number of the first entry: above 1 if older ones were removed with their files.
    pub first: Option<u64>,
    /// The last entry's number and hash. With a copy of these kept elsewhere, a later check shows
    /// whether the whole log was rewritten.
    pub last: Option<Anchor>,
    /// Whether an entry has the hash that was asked for.
    pub anchored: Option<bool>,
    /// Whether the last line is incomplete: its writer was interrupted, or is still writing.
    pub torn: bool,
    /// What the record of the log's end shows.
    pub end: End,
    /// The first places where the chain is broken.
    pub breaks: Vec<Break>,
    /// How many breaks there are in all.
    pub broken: u64,
}

/// What the record of the log's end, `audit.head`, shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum End {
    /// There is none: the log was written by version 0.1.0, and may have been cut at either end.
    #[default]
    Unknown,
    /// The log has its first and its last entry.
    Whole,
    /// The last entries were not on the disk when the machine failed.
    LostWithMachine {
        /// How many.
        entries: u64,
    },
    /// Entries are missing at an end, or the record itself is: it is one of the breaks.
    Broken,
}

/// One entry's place in the chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anchor {
    /// Its number.
    pub seq: u64,
    /// When it was written, in Unix seconds.
    pub at: f64,
    /// Its hash.
    pub hash: Link,
}

/// One place at which the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    pub what: String,
}

impl Verdict {
    /// Whether every entry is as it was written, none between them is missing, and the hash that
    /// was asked for was found.
    pub fn holds(&self) -> bool {
        self.broken == 0 && self.anchored != Some(false)
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file.display(), self.line, self.what)
    }
}

/// Checks the whole log in `folder`. With `anchor`, the hash of an entry seen earlier, the check
/// also looks for that entry.
pub fn verify(folder: &Path, anchor: Option<&Link>) -> io::Result<Verdict> {
    let folder = read::open(folder)?;
    // Read before the log: a writer writes the entry first, so that the log has no less.
    let head = ChainHead::read(&folder);
    let files = files::all(&folder)?;
    let mut reading = Reading {
        verdict: Verdict { files: files.len(), ..Verdict::default() },
        previous: None,
        anchor,
        head: head.as_ref().ok().and_then(Option::as_ref),
        has_head_entry: false,
        says_head: false,
    };
    reading.verdict.anchored = anchor.map(|_| false);
    let newest = files.len();
    for (number, (path, file)) in (1..).zip(files) {
        let mut lines = Lines::new(file);
        for line in 1_u64.. {
            let Some(piece) = lines.next()? else { break };
            let place = |what: String| Break { file: path.clone(), line, what };
            match piece {
                Piece::Torn(_) if number == newest => reading.verdict.torn = true,
                Piece::Torn(bytes) => {
                    reading.breaks(place(format!("it ends after {bytes} bytes")));
                }
                Piece::Garbled => reading.breaks(place("it is not an entry".to_owned())),
                Piece::Line(text) => reading.line(&text, place),
            }
        }
    }
    reading.ends(&folder, &head);
    Ok(reading.verdict)
}

struct Reading<'a> {
    verdict: Verdict,
    previous: Option<(u64, Link)>,
    anchor: Option<&'a Link>,
    head: Option<&'a ChainHead>,
    /// Whether the entry was seen that the head names.
    has_head_entry: bool,
    /// Whether an entry says that the head is kept.
    says_head: bool,
}

impl Reading<'_> {
    fn line(&mut self, text: &str, place: impl Fn(String) -> Break) {
        let head = match record::open(text) {
            Ok(head) => head,
            Err(error) => {
                self.breaks(place(error.to_string()));
                // The lines after it are checked against the altered line's own number and hash.
                if let LineError::Altered(head) = error {
                    self.previous = Some((head.seq, head.hash));
                }
                return;
            }
        };
        self.follows(&head, &place);
        self.looks_for_head(text, &head, place);
        let Head { seq, at, prev: _, hash } = head;
        if self.anchor == Some(&hash) {
            self.verdict.anchored = Some(true);
        }
        self.verdict.entries += 1;
        self.verdict.first.get_or_insert(seq);
        self.previous = Some((seq, hash.clone()));
        self.verdict.last = Some(Anchor { seq, at, hash });
    }

    fn looks_for_head(&mut self, text: &str, line: &Head, place: impl Fn(String) -> Break) {
        self.has_head_entry |=
            self.head.is_some_and(|head| (head.last, &head.hash) == (line.seq, &line.hash));
        if !text.contains("head-kept") {
            return;
        }
        let record = serde_json::from_str::<Record>(text);
        if let Ok(Record { entry: Entry::HeadKept { since }, .. }) = record {
            self.says_head = true;
            if since == Since::Lost {
                let what = format!("{} was missing or unreadable here", chain_head::FILE);
                self.breaks(place(format!("{what}: entries before it may have been cut off")));
            }
        }
    }

    /// Compares both ends of the log with its head.
    fn ends(&mut self, folder: &StateFolder, head: &io::Result<Option<ChainHead>>) {
        let path = folder.path_of(chain_head::FILE);
        let broken_before = self.verdict.broken;
        let place = |what: String| Break { file: path.clone(), line: 1, what };
        match head {
            Ok(Some(head)) => {
                if let Some(lost) = self.loss(head) {
                    self.verdict.end = End::LostWithMachine { entries: lost };
                    return;
                }
                if let Some(what) = self.cut(head, folder) {
                    self.breaks(place(what));
                }
            }
            Ok(None) if self.says_head => {
                self.breaks(place("it is missing, and the log says that it was kept".to_owned()));
            }
            Ok(None) => return,
            Err(error) => self.breaks(place(error.to_string())),
        }
        let broken = self.verdict.broken > broken_before;
        self.verdict.end = if broken { End::Broken } else { End::Whole };
    }

    /// How many entries were lost because the machine failed before they were on the disk.
    fn loss(&self, head: &ChainHead) -> Option<u64> {
        let last = self.verdict.last.as_ref().map_or(0, |last| last.seq);
        let missing = head.last.checked_sub(last).filter(|missing| *missing > 0)?;
        head.allows_loss_after(last).then_some(missing)
    }

    /// What is missing at an end of the log.
    fn cut(&self, head: &ChainHead, folder: &StateFolder) -> Option<String> {
        let first = self.verdict.first.unwrap_or(u64::MAX);
        // Full files may have been removed meanwhile.
        let kept = ChainHead::read(folder).ok().flatten().map_or(head.first, |now| now.first);
        if head.last == 0 || (first > head.last && kept > head.last) {
            return None;
        }
        if first > kept {
            let last = self.verdict.first.map_or(head.last, |first| first - 1);
            return Some(format!(
                "entries {kept} to {last} are missing at the beginning of the log"
            ));
        }
        let last = self.verdict.last.as_ref().map_or(0, |last| last.seq);
        if last < head.last {
            let from = last.saturating_add(1);
            return Some(format!(
                "entries {from} to {} are missing at the end of the log",
                head.last
            ));
        }
        (!self.has_head_entry)
            .then(|| format!("entry {} is not the one that was written", head.last))
    }

    fn follows(&mut self, Head { seq, prev, .. }: &Head, place: impl Fn(String) -> Break) {
        let wrong = match &self.previous {
            Some((before, _)) if before.checked_add(1) != Some(*seq) => {
                format!("entry {seq} follows entry {before}")
            }
            Some((before, link)) if link != prev => {
                format!("it does not name the hash of entry {before} before it")
            }
            None if *seq == 1 && *prev != Link::none() => {
                "entry 1 names an entry before it".to_owned()
            }
            Some(_) | None => return,
        };
        self.breaks(place(wrong));
    }

    fn breaks(&mut self, at: Break) {
        self.verdict.broken += 1;
        if self.verdict.breaks.len() < MAX_DESCRIBED {
            self.verdict.breaks.push(at);
        }
    }
}

#[cfg(test)]
mod tests;
