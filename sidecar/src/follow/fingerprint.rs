//! Telling one file from another by what is in it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// More bytes than these are never looked at.
pub(crate) const LONGEST: usize = 1024;

/// The checksum of some bytes of a file: at its start, or just before the place that was read to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fingerprint {
    length: u16,
    crc: u32,
}

impl Fingerprint {
    /// Of the first [`LONGEST`] of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
        Self { length: u16::try_from(bytes.len()).unwrap_or(u16::MAX), crc: crc32c::crc32c(bytes) }
    }

    /// The bytes of `file` at `offset`, if they are those that this is of.
    pub(crate) fn find(self, file: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; usize::from(self.length).min(LONGEST)];
        let read = read_at(file, &mut bytes, offset)?;
        bytes.truncate(read);
        Ok(Some(bytes).filter(|bytes| Self::of(bytes) == self))
    }

    /// How many bytes it is of.
    pub(crate) fn length(self) -> u64 {
        self.length.into()
    }
}

/// Reads until `buffer` is full or the file ends, and says how much that is. No file has a place
/// that the system's own type for it cannot hold.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    if i64::try_from(offset).is_err() {
        return Ok(0);
    }
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let read_so_far = u64::try_from(filled).unwrap_or(u64::MAX);
        match file.read_at(rest, offset.saturating_add(read_so_far)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
