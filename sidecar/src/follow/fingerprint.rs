//! Recognises a file by its content.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of bytes in a fingerprint.
pub(crate) const MAX_LEN: usize = 1024;

/// The checksum of some bytes of a file: at its start, or just before the read position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fingerprint {
    length: u16,
    crc: u32,
}

impl Fingerprint {
    /// The fingerprint of the first [`MAX_LEN`] of `bytes`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..MAX_LEN).unwrap_or(bytes);
        Self { length: u16::try_from(bytes.len()).unwrap_or(u16::MAX), crc: crc32c::crc32c(bytes) }
    }

    /// The bytes of `file` at `offset`, if they match this fingerprint.
    pub(crate) fn find(self, file: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; usize::from(self.length).min(MAX_LEN)];
        let read = read_at(file, &mut bytes, offset)?;
        bytes.truncate(read);
        Ok(Some(bytes).filter(|bytes| Self::from_bytes(bytes) == self))
    }

    /// The number of bytes that it covers.
    pub(crate) fn length(self) -> u64 {
        self.length.into()
    }
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes. An offset beyond the
/// system's own type is past the end of any file.
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
