//! The files of one container's record.
//!
//! `ID.json` has the owner's limits. It is complete or absent, because it is renamed into place.
//! `ID.last` has our last write. It is written before each write to the container, also when the disk is
//! full: its size never changes. It has two slots of [`SLOT`] bytes, which take turns, each with a number
//! and a checksum. So a write that the machine's end has cut leaves the one before it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::originals::OriginalsError;
use super::record::{FORMAT, LastWrite, Original};

/// The size of a slot, in bytes.
const SLOT: usize = 4096;
/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// A slot's content.
#[derive(Debug, Serialize, Deserialize)]
struct Slot {
    number: u64,
    #[serde(flatten)]
    last: LastWrite,
}

/// The state of a file when it was written, to notice a change by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The files of one container.
#[derive(Clone, Debug)]
pub(super) struct RecordFiles {
    original: PathBuf,
    last: PathBuf,
}

impl RecordFiles {
    pub(super) fn new(folder: &Path, id: &str) -> Self {
        let file = |extension| folder.join(format!("{id}.{extension}"));
        Self { original: file("json"), last: file("last") }
    }

    /// The file of the owner's limits.
    pub(super) fn path(&self) -> &Path {
        &self.original
    }

    /// Reads the owner's limits.
    pub(super) fn read_original(&self) -> Result<Original, OriginalsError> {
        let path = self.original.clone();
        let bytes = read(&path).map_err(|error| OriginalsError::Io(path.clone(), error))?;
        match serde_json::from_slice::<Original>(&bytes) {
            Ok(original) if original.format > FORMAT => {
                Err(OriginalsError::Newer { path, format: original.format })
            }
            Ok(original) if Some(original.id.as_str()) != self.id() => {
                Err(OriginalsError::Other { path, id: original.id })
            }
            Ok(original) => Ok(original),
            Err(error) => Err(OriginalsError::Malformed(path, error)),
        }
    }

    fn id(&self) -> Option<&str> {
        self.original.file_stem().and_then(|stem| stem.to_str())
    }

    /// Reads the number and the values of our last write; `None` if there is no complete slot.
    pub(super) fn read_last(&self) -> Option<(u64, LastWrite)> {
        let bytes = read(&self.last).ok()?;
        let slots = bytes.chunks(SLOT).filter_map(parse);
        slots.max_by_key(|slot| slot.number).map(|slot| (slot.number, slot.last))
    }

    /// Writes the owner's limits; with `sync`, they are on the disk afterwards.
    pub(super) fn write_original(&self, original: &Original, sync: bool) -> io::Result<Seal> {
        write_whole(&self.original, &serde_json::to_vec_pretty(original)?, sync)
    }

    /// Creates the file of our last write, with a first slot.
    pub(super) fn create_last(&self, number: u64, last: &LastWrite, sync: bool) -> io::Result<()> {
        let mut bytes = vec![b' '; 2 * SLOT];
        let slot = slot(number, last)?;
        let start = offset(number);
        let target = bytes.get_mut(start..start + SLOT).ok_or(io::ErrorKind::InvalidInput)?;
        target.copy_from_slice(&slot);
        write_whole(&self.last, &bytes, sync).map(drop)
    }

    /// Writes our last write into the slot that its number chooses. Needs no space on the disk.
    pub(super) fn write_last(&self, number: u64, last: &LastWrite, sync: bool) -> io::Result<()> {
        let file = File::options().write(true).custom_flags(no_link()).open(&self.last)?;
        if file.metadata()?.len() != u64::try_from(2 * SLOT).unwrap_or(u64::MAX) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write_all_at(&slot(number, last)?, u64::try_from(offset(number)).unwrap_or_default())?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    /// The present state of the file of the owner's limits.
    pub(super) fn seal(&self) -> Option<Seal> {
        fs::metadata(&self.original).ok().map(|file| seal(&file))
    }

    /// Whether the file of our last write can be written.
    pub(super) fn has_last(&self) -> bool {
        let size = u64::try_from(2 * SLOT).unwrap_or(u64::MAX);
        fs::metadata(&self.last).is_ok_and(|file| file.len() == size)
    }

    /// Removes both. The record ends with the first one.
    pub(super) fn remove(&self) -> Result<(), OriginalsError> {
        for path in [&self.original, &self.last] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(OriginalsError::Io(path.clone(), error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where a slot begins.
fn offset(number: u64) -> usize {
    if number.is_multiple_of(2) { 0 } else { SLOT }
}

/// A slot: a checksum, the values, and blanks up to its size.
fn slot(number: u64, last: &LastWrite) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(&Slot { number, last: last.clone() })?;
    let mut bytes = format!("{:016x} {text}", checksum(text.as_bytes())).into_bytes();
    if bytes.len() >= SLOT {
        let why = format!("{} bytes for a write do not fit into {SLOT}", bytes.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    bytes.resize(SLOT - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Option<Slot> {
    let (sum, text) = std::str::from_utf8(bytes).ok()?.trim_end().split_once(' ')?;
    let right = u64::from_str_radix(sum, 16) == Ok(checksum(text.as_bytes()));
    right.then(|| serde_json::from_str(text).ok())?
}

/// FNV-1a of 64 bits: it finds a cut write, and protects from nothing else.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(no_link()).open(path)?;
    let size = file.metadata()?;
    if !size.is_file() || size.len() > MAX_FILE {
        let why = format!("expected a file of at most {MAX_FILE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE), &mut bytes)?;
    Ok(bytes)
}

/// Links are not followed, and opening never waits.
pub(super) fn no_link() -> i32 {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// Writes a file that is complete or absent.
fn write_whole(path: &Path, bytes: &[u8], sync: bool) -> io::Result<Seal> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = PathBuf::from(unfinished);
    let write = || {
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(no_link())
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(&unfinished, path)?;
        if sync && let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(seal(&file.metadata()?))
    };
    write().inspect_err(|_| {
        // On a full disk, even an incomplete file takes space.
        drop(fs::remove_file(&unfinished));
    })
}

fn seal(file: &fs::Metadata) -> Seal {
    Seal { inode: file.ino(), size: file.size(), changed: (file.mtime(), file.mtime_nsec()) }
}

#[cfg(test)]
mod tests {
    use paceline_runtime::HostCpu;

    use super::*;

    fn write(nano_cpus: i64) -> LastWrite {
        let host = vec![HostCpu { nano_cpus, ..HostCpu::default() }];
        LastWrite { host, ..LastWrite::default() }
    }

    #[test]
    fn cut_write_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let files = RecordFiles::new(folder.path(), "4f2a");
        assert_eq!(files.read_last(), None);
        files.create_last(1, &write(1), true).unwrap();
        files.write_last(2, &write(2), false).unwrap();
        assert_eq!(files.read_last(), Some((2, write(2))));
        let path = folder.path().join("4f2a.last");
        let whole = fs::read(&path).unwrap();
        for cut in [1, 20, 60, 100] {
            let mut bytes = whole.clone();
            bytes[cut] ^= 1;
            fs::write(&path, bytes).unwrap();
            assert_eq!(files.read_last(), Some((1, write(1))), "byte {cut}");
        }
        fs::write(&path, "").unwrap();
        assert_eq!(files.read_last(), None);
        assert!(!files.has_last() && files.write_last(3, &write(3), false).is_err());
    }

    #[test]
    fn later_write_takes_no_space() {
        let folder = tempfile::tempdir().unwrap();
        let files = RecordFiles::new(folder.path(), "4f2a");
        files.create_last(1, &write(1), false).unwrap();
        let size = || fs::metadata(folder.path().join("4f2a.last")).unwrap().len();
        let before = size();
        for number in 2..9 {
            files.write_last(number, &write(i64::MAX), false).unwrap();
        }
        assert_eq!((size(), files.read_last().unwrap().0), (before, 8));
    }

    #[test]
    fn anything_but_a_small_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let files = RecordFiles::new(folder.path(), "4f2a");
        fs::write(files.path(), vec![b' '; 70_000]).unwrap();
        let error = files.read_original().unwrap_err();
        assert!(matches!(error, OriginalsError::Io(..)), "{error}");
        fs::write(files.path(), "").unwrap();
        assert!(matches!(files.read_original(), Err(OriginalsError::Malformed(..))));
    }
}
