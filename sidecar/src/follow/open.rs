//! An open file and its read position.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::fingerprint::{self, Fingerprint, read_at};
use super::{CHUNK, Piece};

/// Number of bytes before the read position that are read again. They distinguish a file that has
/// grown from one that was truncated and then grew past the position.
pub(super) const TAIL: usize = 64;

/// The read position of a file, and how to recognise the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Mark {
    pub(super) identity: Identity,
    /// Bytes that were read.
    pub(super) offset: u64,
    head: Fingerprint,
    tail: Fingerprint,
}

/// The identity of a file in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Identity {
    device: u64,
    pub(super) inode: u64,
}

impl Identity {
    pub(super) fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// The result of a read.
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
    /// The first bytes that were read.
    head: Vec<u8>,
    /// The last bytes that were read.
    tail: Vec<u8>,
}

impl Open {
    /// Resumes at one of `marks` if it belongs to the file, otherwise at the start. The device is
    /// not compared, because its number changes when a network file system is mounted again.
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

    /// Whether it has no bytes, or cannot be asked.
    pub(super) fn is_empty(&self) -> bool {
        self.file.metadata().map_or(true, |metadata| metadata.len() == 0)
    }

    pub(super) fn mark(&self) -> Mark {
        let (head, tail) =
            (Fingerprint::from_bytes(&self.head), Fingerprint::from_bytes(&self.tail));
        Mark { identity: self.identity, offset: self.offset, head, tail }
    }

    /// Reads once. The bytes are passed on only if the file still has the same head and tail after
    /// the read. Otherwise the next read begins at the start.
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
            // Zeros at the end are blocks that are not written yet.
            let written = fresh.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            fresh = fresh.get(..written).unwrap_or_default();
        }
        fresh = fresh.get(..CHUNK).unwrap_or(fresh);
        if fresh.is_empty() {
            return Ok(Got::End);
        }
        self.offset = self.offset.saturating_add(size(fresh));
        let room = fingerprint::MAX_LEN.saturating_sub(self.head.len());
        self.head.extend(fresh.iter().take(room));
        self.tail.extend(fresh.get(fresh.len().saturating_sub(TAIL)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        sink(Piece::Bytes(fresh));
        Ok(Got::Bytes)
    }

    /// Reads again what is before the read position, from `from` on. Returns the number of bytes.
    pub(super) fn read_again(&self, buffer: &mut [u8], from: u64) -> io::Result<usize> {
        let left = usize::try_from(self.offset.saturating_sub(from)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left).min(CHUNK);
        read_at(&self.file, buffer.get_mut(..length).unwrap_or_default(), from)
    }

    /// Whether the file still has a name.
    pub(super) fn has_name(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 0)
    }

    fn changed_head(&self) -> io::Result<Option<Got>> {
        let mut head = [0; fingerprint::MAX_LEN];
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
