//! An open file, and how far it is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::fingerprint::{self, Fingerprint, read_at};
use super::{CHUNK, Piece};

/// So many bytes before the place that is read to are read again: they tell a file that has grown
/// from one that was truncated and has grown past that place.
pub(super) const TAIL: usize = 64;

/// How far a file is read, and how to know it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Mark {
    pub(super) identity: Identity,
    /// Bytes that were read.
    pub(super) offset: u64,
    head: Fingerprint,
    tail: Fingerprint,
}

/// What the file system knows a file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Identity {
    device: u64,
    pub(super) inode: u64,
}

impl Identity {
    pub(super) fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    Bytes,
    End,
    Truncated,
    Replaced,
}

/// A regular file that is open.
#[derive(Debug)]
pub(super) struct Open {
    file: File,
    pub(super) identity: Identity,
    offset: u64,
    /// The first bytes, as far as they were read.
    head: Vec<u8>,
    /// The last bytes that were read.
    tail: Vec<u8>,
}

impl Open {
    /// Goes on at one of `marks` if the file is one of those, and begins at its start otherwise.
    /// The device is not compared: its number changes when a network file system is mounted again.
    pub(super) fn new<'a>(
        file: File,
        identity: Identity,
        marks: impl Iterator<Item = &'a Mark>,
    ) -> io::Result<Self> {
        let mut open = Self { file, identity, offset: 0, head: Vec::new(), tail: Vec::new() };
        let length = open.file.metadata()?.len();
        let same = |mark: &&Mark| mark.identity.inode == identity.inode && mark.offset <= length;
        for mark in marks.filter(same) {
            let tail_at = mark.offset.saturating_sub(mark.tail.length());
            if let Some(head) = mark.head.find(&open.file, 0)?
                && let Some(tail) = mark.tail.find(&open.file, tail_at)?
            {
                (open.offset, open.head, open.tail) = (mark.offset, head, tail);
                break;
            }
        }
        Ok(open)
    }

    pub(super) fn mark(&self) -> Mark {
        let (head, tail) = (Fingerprint::of(&self.head), Fingerprint::of(&self.tail));
        Mark { identity: self.identity, offset: self.offset, head, tail }
    }

    /// Reads on once. The bytes are only given if, after they were read, the file still begins and
    /// goes on as it did; otherwise the next read begins at the start.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> io::Result<Got> {
        let from = self.offset.saturating_sub(size(&self.tail));
        let read = read_at(&self.file, buffer, from)?;
        let (whole, full) = (buffer.get(..read).unwrap_or_default(), read == buffer.len());
        let changed = match whole.strip_prefix(self.tail.as_slice()) {
            None if read < self.tail.len() => Some(Got::Truncated),
            None => Some(Got::Replaced),
            Some(_) => self.changed_head()?,
        };
        if let Some(changed) = changed {
            (self.offset, self.head, self.tail) = (0, Vec::new(), Vec::new());
            return Ok(changed);
        }
        let mut fresh = whole.get(self.tail.len()..).unwrap_or_default();
        if !full {
            // Zeros at the end are blocks that the file system does not show yet.
            let written = fresh.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            fresh = fresh.get(..written).unwrap_or_default();
        }
        fresh = fresh.get(..CHUNK).unwrap_or(fresh);
        if fresh.is_empty() {
            return Ok(Got::End);
        }
        self.offset = self.offset.saturating_add(size(fresh));
        let room = fingerprint::LONGEST.saturating_sub(self.head.len());
        self.head.extend(fresh.iter().take(room));
        self.tail.extend(fresh.get(fresh.len().saturating_sub(TAIL)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        sink(Piece::Bytes(fresh));
        Ok(Got::Bytes)
    }

    /// Whether some name still leads to the file.
    pub(super) fn has_name(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 0)
    }

    fn changed_head(&self) -> io::Result<Option<Got>> {
        let mut head = [0; fingerprint::LONGEST];
        let wanted = head.get_mut(..self.head.len()).unwrap_or_default();
        let read = read_at(&self.file, wanted, 0)?;
        Ok(if read < self.head.len() {
            Some(Got::Truncated)
        } else {
            (*wanted != *self.head).then_some(Got::Replaced)
        })
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
