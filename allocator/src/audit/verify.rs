//! Whether the log is what was written: `paceline audit verify`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::files::{self, Lines, Piece};
use super::record::{self, Head, LineError, Link};

/// So many breaks are described; the others are counted.
const DESCRIBED: usize = 20;

/// What a reading of the whole log came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// How many files it has.
    pub files: usize,
    /// How many entries.
    pub entries: u64,
    /// The number of the first: above 1 where older ones were removed with their files.
    pub first: Option<u64>,
    /// The last one's number and hash: whoever keeps these elsewhere can tell later whether the log
    /// was written anew as a whole.
    pub last: Option<Anchor>,
    /// Whether the hash that was asked for is that of an entry.
    pub anchored: Option<bool>,
    /// Whether the last line is not whole, as of a writer that was cut short, or is at it.
    pub torn: bool,
    /// Where the chain is broken: the first of them.
    pub breaks: Vec<Break>,
    /// How many breaks there are.
    pub broken: u64,
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
    /// Whether every entry that is there is as it was written, and none between them is missing.
    pub fn holds(&self) -> bool {
        self.broken == 0 && self.anchored != Some(false)
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file.display(), self.line, self.what)
    }
}

/// Reads the whole log in `folder`. With `anchor`, the hash of an entry that was once seen, it is
/// also looked for.
pub fn verify(folder: &Path, anchor: Option<&Link>) -> io::Result<Verdict> {
    let files = files::all(folder)?;
    let mut reading = Reading {
        verdict: Verdict { files: files.len(), ..Verdict::default() },
        previous: None,
        anchor,
    };
    reading.verdict.anchored = anchor.map(|_| false);
    let newest = files.len();
    for (number, (path, file)) in (1..).zip(files) {
        let mut lines = Lines::of(file);
        for line in 1_u64.. {
            let Some(piece) = lines.next()? else { break };
            let place = |what: String| Break { file: path.clone(), line, what };
            match piece {
                Piece::Torn(_) if number == newest => reading.verdict.torn = true,
                Piece::Torn(bytes) => {
                    reading.breaks(place(format!("it ends after {bytes} bytes")));
                }
                Piece::Garbled => reading.breaks(place("it is no entry".to_owned())),
                Piece::Line(text) => reading.line(&text, place),
            }
        }
    }
    Ok(reading.verdict)
}

struct Reading<'a> {
    verdict: Verdict,
    previous: Option<(u64, Link)>,
    anchor: Option<&'a Link>,
}

impl Reading<'_> {
    fn line(&mut self, text: &str, place: impl Fn(String) -> Break) {
        let head = match record::open(text) {
            Ok(head) => head,
            Err(error) => {
                self.breaks(place(error.to_string()));
                // What follows is judged by what the altered line says of itself.
                if let LineError::Altered(head) = error {
                    self.previous = Some((head.seq, head.hash));
                }
                return;
            }
        };
        self.follows(&head, place);
        let Head { seq, at, prev: _, hash } = head;
        if self.anchor == Some(&hash) {
            self.verdict.anchored = Some(true);
        }
        self.verdict.entries += 1;
        self.verdict.first.get_or_insert(seq);
        self.previous = Some((seq, hash.clone()));
        self.verdict.last = Some(Anchor { seq, at, hash });
    }

    fn follows(&mut self, Head { seq, prev, .. }: &Head, place: impl Fn(String) -> Break) {
        let wrong = match &self.previous {
            Some((before, _)) if before.checked_add(1) != Some(*seq) => {
                format!("entry {seq} follows entry {before}")
            }
            Some((before, link)) if link != prev => {
                format!("entry {before} is not the one that it follows")
            }
            None if *seq == 1 && *prev != Link::none() => "entry 1 follows another".to_owned(),
            Some(_) | None => return,
        };
        self.breaks(place(wrong));
    }

    fn breaks(&mut self, at: Break) {
        self.verdict.broken += 1;
        if self.verdict.breaks.len() < DESCRIBED {
            self.verdict.breaks.push(at);
        }
    }
}

#[cfg(test)]
mod tests;
