//! A log that is being written, followed from its start: late, rotated, truncated, replaced, behind
//! a link, or a pipe.
//!
//! [`Follower::poll`] is asked again and again, a few times in a second; [`wake::Wake`] says when
//! it is worth asking earlier.

mod fingerprint;
mod open;
mod stream;
mod tail;
pub mod wake;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

pub(crate) use fingerprint::{Fingerprint, read_at};
use open::Mark;
use stream::Stream;
use tail::{Found, Tail};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Reads in one poll.
const READS: u32 = 16;

/// What a poll gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the log, at most 64 KiB.
    Bytes(&'a [u8]),
    /// What comes next is not the continuation of what came before.
    Break(Break),
}

/// Why a log does not go on where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Another file has its name; the old one was read to its end.
    Rotated,
    /// It is shorter than it was, and is read from its start.
    Truncated,
    /// Its contents are others than they were, and are read from their start.
    Replaced,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether there is a log.
    pub state: State,
    /// Bytes that were given.
    pub bytes: u64,
    /// Whether there is more to read at once.
    pub more: bool,
    /// Whether another file was opened, so that other files are to be watched.
    pub opened: bool,
}

/// Whether there is a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is none: not yet, or it was deleted. One that was deleted is still read while it is
    /// written to.
    #[default]
    Missing,
    /// There is one.
    Up,
    /// It was a pipe, and has ended for good.
    Ended,
}

/// What was met since the start or the resumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes given.
    pub bytes: u64,
    /// Times that another file took the name.
    pub rotations: u64,
    /// Times that the file became shorter.
    pub truncations: u64,
    /// Times that the contents were replaced.
    pub replacements: u64,
}

/// How far a [`Follower`] has read, for one that goes on where it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Saved {
    /// The files, the last of which was being read.
    files: Vec<Mark>,
}

/// Follows one log.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    buffer: Vec<u8>,
    counts: Counts,
}

#[derive(Debug)]
enum Source {
    Path(Tail),
    Stream(Stream),
}

impl Follower {
    /// Follows the file or named pipe at `path`. Nothing need be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::resume(path, Saved::default())
    }

    /// The same, going on from where another one was: if it is the same file, even under the name
    /// that a rotation gave it.
    pub fn resume(path: impl Into<PathBuf>, saved: Saved) -> Self {
        Self::of(Source::Path(Tail::new(path.into(), saved.files)))
    }

    /// Reads what is piped into this process.
    pub fn stdin() -> io::Result<Self> {
        Ok(Self::pipe(io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    /// Reads a pipe until its other end is closed.
    pub fn pipe(file: File) -> Self {
        Self::of(Source::Stream(Stream::new(file, false)))
    }

    fn of(source: Source) -> Self {
        let buffer = vec![0; CHUNK + open::TAIL];
        Self { source, buffer, counts: Counts::default() }
    }

    /// Reads on, a bounded amount, and gives what is there. That there is no log is no error; an
    /// error is for this time only, and the next call tries again.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Piece<'_>)) -> io::Result<Progress> {
        let mut given = 0_u64;
        let counts = &mut self.counts;
        let mut sink = |piece: Piece<'_>| {
            match piece {
                Piece::Bytes(bytes) => {
                    given = given.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                }
                Piece::Break(Break::Rotated) => counts.rotations += 1,
                Piece::Break(Break::Truncated) => counts.truncations += 1,
                Piece::Break(Break::Replaced) => counts.replacements += 1,
            }
            sink(piece);
        };
        let polled = self.source.poll(&mut self.buffer, &mut sink);
        self.counts.bytes = self.counts.bytes.saturating_add(given);
        polled.map(|progress| Progress { bytes: given, ..progress })
    }

    /// How far it has read; `None` for a pipe, which cannot be read again.
    pub fn saved(&self) -> Option<Saved> {
        match &self.source {
            Source::Path(tail) => Some(Saved { files: tail.marks() }),
            Source::Stream(_) => None,
        }
    }

    /// What was met.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What becomes readable when there is more, for a pipe. A file is watched by its name.
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Path(_) => None,
            Source::Stream(stream) => Some(stream.as_fd()),
        }
    }
}

impl Source {
    fn poll(&mut self, buffer: &mut [u8], sink: &mut dyn FnMut(Piece<'_>)) -> io::Result<Progress> {
        match self {
            Self::Path(tail) => match tail.poll(buffer, sink)? {
                Found::File(progress) => return Ok(progress),
                Found::Pipe(file) => *self = Self::Stream(Stream::new(file, true)),
            },
            Self::Stream(stream) => return stream.poll(buffer, sink),
        }
        self.poll(buffer, sink).map(|progress| Progress { opened: true, ..progress })
    }
}

#[cfg(test)]
mod tests;
