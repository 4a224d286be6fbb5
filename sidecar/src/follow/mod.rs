//! Follows a log from its start while it is written. The log may appear late, be rotated, truncated
//! or replaced, be a link, or be a pipe.
//!
//! Call [`Follower::poll`] a few times per second. [`wake::Wake`] reports when an earlier call is
//! worthwhile.

mod fingerprint;
mod open;
mod stream;
mod tail;
#[cfg_attr(not(target_os = "linux"), path = "no_wake.rs")]
pub mod wake;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

pub(crate) use fingerprint::{Fingerprint, read_at};
use open::Mark;
use stream::Stream;
use tail::{Found, Tail};

/// Bytes per read.
const CHUNK: usize = 64 * 1024;
/// Reads in one poll.
const READS: u32 = 16;

/// One item of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the log, at most 64 KiB.
    Bytes(&'a [u8]),
    /// Bytes that an earlier follower has passed on: those up to the saved position, or the last of them.
    Recalled(&'a [u8]),
    /// All that was there at the start has been passed on. It comes once.
    CaughtUp,
    /// The next bytes do not continue the previous ones.
    Break(Break),
}

/// Why a log does not continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Another file has taken its name. The old one was read to its end.
    Rotated,
    /// It became shorter and is read from its start.
    Truncated,
    /// Its content was replaced and is read from its start.
    Replaced,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the log exists.
    pub state: State,
    /// Bytes passed on by this poll.
    pub bytes: u64,
    /// Whether more can be read immediately.
    pub more: bool,
    /// Whether another file was opened. The watches must then be renewed.
    pub opened: bool,
}

/// Whether the log exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It does not exist yet, or it was deleted. A deleted file is still read while it is written
    /// to.
    #[default]
    Missing,
    /// It exists.
    Up,
    /// It was a pipe and has ended.
    Ended,
}

/// Counts since the start or the resumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes passed on.
    pub bytes: u64,
    /// How often another file took the name.
    pub rotations: u64,
    /// How often the file became shorter.
    pub truncations: u64,
    /// How often the content was replaced.
    pub replacements: u64,
}

/// The read position of a [`Follower`], from which another one can resume.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Saved {
    /// The files; the last one was being read.
    files: Vec<Mark>,
}

/// Follows one log.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    buffer: Vec<u8>,
    counts: Counts,
    caught_up: bool,
}

#[derive(Debug)]
enum Source {
    Path(Tail),
    Stream(Stream),
}

impl Follower {
    /// Follows the file or named pipe at `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::resume(path, Saved::default())
    }

    /// Like `new`, but resumes at a saved position if it is the same file, even if a rotation has
    /// renamed it. What is before that position comes first, as [`Piece::Recalled`].
    pub fn resume(path: impl Into<PathBuf>, saved: Saved) -> Self {
        Self::from_source(Source::Path(Tail::new(path.into(), saved.files)))
    }

    /// Reads standard input.
    pub fn stdin() -> io::Result<Self> {
        Ok(Self::pipe(io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    /// Reads a pipe until its other end is closed.
    pub fn pipe(file: File) -> Self {
        Self::from_source(Source::Stream(Stream::new(file, false)))
    }

    fn from_source(source: Source) -> Self {
        let buffer = vec![0; CHUNK + open::TAIL];
        Self { source, buffer, counts: Counts::default(), caught_up: false }
    }

    /// Reads on, a bounded amount, and passes it to `sink`. A missing log is not an error. After an
    /// error the next call tries again.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Piece<'_>)) -> io::Result<Progress> {
        let mut given = 0_u64;
        let counts = &mut self.counts;
        let mut sink = |piece: Piece<'_>| {
            match piece {
                Piece::Bytes(bytes) => {
                    given = given.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                }
                Piece::Recalled(_) | Piece::CaughtUp => {}
                Piece::Break(Break::Rotated) => counts.rotations += 1,
                Piece::Break(Break::Truncated) => counts.truncations += 1,
                Piece::Break(Break::Replaced) => counts.replacements += 1,
            }
            sink(piece);
        };
        let polled = self.source.poll(&mut self.buffer, &mut sink);
        if !self.caught_up && polled.as_ref().is_ok_and(|progress| !progress.more) {
            self.caught_up = true;
            sink(Piece::CaughtUp);
        }
        self.counts.bytes = self.counts.bytes.saturating_add(given);
        polled.map(|progress| Progress { bytes: given, ..progress })
    }

    /// The read position; `None` for a pipe, which cannot be read again.
    pub fn saved(&self) -> Option<Saved> {
        match &self.source {
            Source::Path(tail) => Some(Saved { files: tail.marks() }),
            Source::Stream(_) => None,
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The descriptor that becomes readable when a pipe has more. `None` for a file, which is
    /// watched by its name.
    pub fn readable(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Path(_) => None,
            Source::Stream(stream) => Some(stream.as_fd()),
        }
    }
}

/// Opens a regular file without waiting. Opening a named pipe would block until someone writes to it.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    match tail::open(path)? {
        Some((file, metadata)) if metadata.is_file() => Ok(file),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        None => Err(io::ErrorKind::NotFound.into()),
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
