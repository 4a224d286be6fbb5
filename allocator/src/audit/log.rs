//! Adding to the log.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use super::Entry;
use super::files;
use super::record::{self, Head, Link};
use super::sync::Syncer;
use crate::clock::unix_seconds;

/// When a file is full, and how many full ones stay.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// In bytes.
    pub size: u64,
    /// Beside the one that is written.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { size: 16 * 1024 * 1024, kept: 8 }
    }
}

/// The log that a run adds to. Several processes may add to the same one: each takes its lock for
/// as long as it writes, and goes on from what is there.
#[derive(Debug)]
pub struct Audit {
    folder: PathBuf,
    rotation: Rotation,
    lock: File,
    open: Option<Open>,
    /// Entries that could not be written since the last one that could.
    missed: u64,
    syncer: Syncer,
}

/// The file that is written, as it was left.
#[derive(Debug)]
struct Open {
    file: File,
    /// Which it is: its name may have become another's.
    inode: u64,
    length: u64,
    /// The last entry's number and hash.
    last: (u64, Link),
    /// Bytes of a broken line that were taken off its end, not told of yet.
    torn: u64,
}

/// Why the log cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Opening or writing failed.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

impl Audit {
    /// Opens, and makes if need be, the log in `folder`.
    pub fn open(folder: &Path) -> Result<Self, AuditError> {
        Self::open_with(folder, Rotation::default())
    }

    /// The same, with files of another size or number.
    pub fn open_with(folder: &Path, rotation: Rotation) -> Result<Self, AuditError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| AuditError::Io(path, error)
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let lock = folder.join("audit.lock");
        // Nobody else may hold it: that would hold the run.
        let options =
            || File::options().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let mut log = Self {
            folder: folder.to_owned(),
            rotation,
            lock: options().map_err(failed(&lock))?,
            open: None,
            missed: 0,
            syncer: Syncer::start().map_err(failed(folder))?,
        };
        log.locked(|log| catch_up(&mut log.open, folder).map(drop))
            .map_err(failed(&files::current(folder)))?;
        Ok(log)
    }

    /// Adds an entry of this moment. A failure is counted and said, and never ends a run: the next
    /// entry that can be written is preceded by one that tells how many are missing.
    pub fn write(&mut self, entry: &Entry) {
        match self.locked(|log| log.append(entry)) {
            Ok(()) if self.missed > 0 => {
                info!("the audit log is written again; {} entries are missing", self.missed);
                self.missed = 0;
            }
            Ok(()) => {}
            Err(error) => {
                self.missed += 1;
                if self.missed == 1 {
                    let path = files::current(&self.folder);
                    warn!("{} cannot be written, entries are lost: {error}", path.display());
                }
            }
        }
    }

    fn locked<T>(&mut self, work: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.lock.lock()?;
        let done = work(self);
        self.lock.unlock()?;
        done
    }

    fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let current = files::current(&self.folder);
        let open = catch_up(&mut self.open, &self.folder)?;
        if open.length >= self.rotation.size {
            fs::rename(current, files::set_aside(&self.folder, open.last.0))?;
            self.forget_oldest();
        }
        let open = catch_up(&mut self.open, &self.folder)?;
        let torn = (open.torn > 0).then_some(Entry::Torn { bytes: open.torn });
        let missed = (self.missed > 0).then_some(Entry::Missed { count: self.missed });
        let (mut text, mut last) = (String::new(), open.last.clone());
        for entry in torn.iter().chain(&missed).chain([entry]) {
            let seq = last.0 + 1;
            let (line, hash) = record::seal(seq, unix_seconds(), &last.1, entry)?;
            if line.len() > files::LONGEST {
                return Err(io::Error::other("an entry is longer than a line may be"));
            }
            text.push_str(&line);
            text.push('\n');
            last = (seq, hash);
        }
        open.file.write_all(text.as_bytes()).inspect_err(|_| {
            // Where this fails as well, the next entry finds a file that is not as it was left.
            drop(open.file.set_len(open.length));
        })?;
        open.length += u64::try_from(text.len()).map_err(io::Error::other)?;
        (open.last, open.torn) = (last, 0);
        self.syncer.written(&open.file);
        Ok(())
    }

    fn forget_oldest(&self) {
        let older = files::older(&self.folder).unwrap_or_default();
        let surplus = older.len().saturating_sub(self.rotation.kept);
        for path in older.iter().take(surplus) {
            if let Err(error) = fs::remove_file(path) {
                warn!("{} is not removed: {error}", path.display());
            }
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Some(open) = &self.open
            && let Err(error) = open.file.sync_data()
        {
            warn!("the audit log may not have reached the disk: {error}");
        }
        if self.missed > 0 {
            warn!("the audit log lacks its last {} entries", self.missed);
        }
    }
}

/// The file as it is now: another process may have added to it, or set it aside.
fn catch_up<'a>(left: &'a mut Option<Open>, folder: &Path) -> io::Result<&'a mut Open> {
    let path = files::current(folder);
    let same = left.take().filter(|open| {
        fs::metadata(&path).is_ok_and(|now| now.ino() == open.inode && now.len() == open.length)
    });
    let open = same.map_or_else(|| Open::new(folder, &path), Ok)?;
    Ok(left.insert(open))
}

impl Open {
    fn new(folder: &Path, path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let metadata = file.metadata()?;
        let (last, torn) = end_of(&file)?;
        let length = metadata.len().saturating_sub(torn);
        if torn > 0 {
            file.set_len(length)?;
        }
        // The first line of a file goes on from the last of the file before.
        let last = match last {
            Some(last) => last,
            None => before(folder)?.unwrap_or_else(|| (0, Link::none())),
        };
        Ok(Self { file, inode: metadata.ino(), length, last, torn })
    }
}

fn before(folder: &Path) -> io::Result<Option<(u64, Link)>> {
    for path in files::older(folder)?.iter().rev() {
        if let (Some(last), _) = end_of(&File::open(path)?)? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// The last entry of a file, and how many bytes without an end of line follow the last whole line.
fn end_of(file: &File) -> io::Result<(Option<(u64, Link)>, u64)> {
    let length = file.metadata()?.len();
    let longest = u64::try_from(files::LONGEST).map_err(io::Error::other)?;
    // Whatever is torn is shorter than a line, and the line before it is whole.
    let start = length.saturating_sub(longest.saturating_mul(2));
    let mut end = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
    file.read_exact_at(&mut end, start)?;
    let mut lines = end.rsplit(|byte| *byte == b'\n');
    let torn = lines.next().map_or(0, <[u8]>::len);
    let head = lines.find_map(|line| serde_json::from_slice::<Head>(line).ok());
    let torn = u64::try_from(torn).map_err(io::Error::other)?;
    Ok((head.map(|head| (head.seq, head.hash)), torn))
}

#[cfg(test)]
mod tests;
