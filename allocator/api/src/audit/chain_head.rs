//! The head of the chain: the number and hash of the last entry, kept beside the log.
//!
//! The lines alone do not show that lines were cut off at the end, or whole files at the beginning.
//! A writer overwrites this file with each entry, after the entry. So the log never ends before the
//! head says, except after a failure of the machine: the disk may then have the new head without
//! the last entries. A head that was written before the machine was started last therefore requires
//! only the entries that were synced.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::record::Link;
use crate::state_folder::StateFolder;

/// The name of its file.
pub(super) const FILE: &str = "audit.head";
/// The version of its format.
const FORMAT: u32 = 1;
/// The length of the file. It stays the same, so that a full disk does not prevent a write.
const LENGTH: usize = 512;

/// What the log must hold at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChainHead {
    format: u32,
    /// The number of the first entry that is kept.
    pub(super) first: u64,
    /// The number of the last entry.
    pub(super) last: u64,
    /// Its hash.
    pub(super) hash: Link,
    /// The number of the last entry that is known to be on the disk.
    pub(super) synced: u64,
    /// The machine's run in which this was written, as the kernel names it.
    boot: String,
}

impl ChainHead {
    pub(super) fn new(first: u64, (last, hash): (u64, Link), synced: u64) -> Self {
        Self { format: FORMAT, first, last, hash, synced, boot: boot() }
    }

    /// Reads the head of the log in `folder`; `None` if it has none.
    pub(super) fn read(folder: &StateFolder) -> io::Result<Option<Self>> {
        let most = u64::try_from(LENGTH).map_err(io::Error::other)?;
        let Some(bytes) = folder.read(FILE, most)? else { return Ok(None) };
        let head: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let why = format!("it does not hold the number and hash of an entry ({error})");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        if head.format > FORMAT {
            let why = format!("it has format {}; this version reads up to {FORMAT}", head.format);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Some(head))
    }

    /// Overwrites the file with this head.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let text = serde_json::to_string(self)?;
        let text = format!("{text:<width$}\n", width = LENGTH - 1);
        file.write_all_at(text.as_bytes(), 0)
    }

    /// Whether the log may end with entry `last`, because the machine failed after the head was
    /// written.
    pub(super) fn allows_loss_after(&self, last: u64) -> bool {
        self.boot != boot() && last >= self.synced
    }
}

/// The kernel's name of the machine's present run.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_read_as_it_was_written_and_keeps_its_length() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        assert_eq!(ChainHead::read(&folder).unwrap(), None);
        let file = folder.updated_file(FILE).unwrap();
        for last in [u64::MAX, 7] {
            let head = ChainHead::new(1, (last, Link::none()), last / 2);
            head.write(&file).unwrap();
            assert_eq!(ChainHead::read(&folder).unwrap(), Some(head));
            assert_eq!(usize::try_from(file.metadata().unwrap().len()), Ok(LENGTH));
        }
    }

    #[test]
    fn unreadable_head_is_an_error_that_says_what_is_expected() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        let newer = serde_json::to_string(&ChainHead {
            format: 2,
            ..ChainHead::new(1, (7, Link::none()), 7)
        });
        let long = " ".repeat(LENGTH + 1);
        for (text, words) in [
            ("", "number and hash"),
            ("{}", "number and hash"),
            (&newer.unwrap(), "has format 2; this version reads up to 1"),
            (&long, "more than 512 bytes"),
        ] {
            fs::write(place.path().join(FILE), text).unwrap();
            let error = ChainHead::read(&folder).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
