//! Appending to the log.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::chain_head::{self, ChainHead};
use super::entry::Since;
use super::files::{self, Lines, Piece};
use super::record::{self, Head, Link};
use super::sync::Syncer;
use super::{Entry, read};
use crate::clock::unix_seconds;
use crate::state_folder::{StateError, StateFolder};

/// The size of a full file, and how many full files are kept.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// The size at which a file is full, in bytes.
    pub size: u64,
    /// How many full files are kept, in addition to the one that is written.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { size: 16 * 1024 * 1024, kept: 8 }
    }
}

/// The file whose holder may append.
const LOCK: &str = "audit.lock";
/// How often a lock that another process holds is tried again for one entry, and the pause. A process
/// writes its entry within a millisecond, and one that is stopped must not stop the caller's loop.
const MAX_TRIES: u32 = 200;
const TRY_PAUSE: Duration = Duration::from_millis(1);

/// The log that a run appends to. Several processes may append to the same log. Each holds the
/// lock while it writes, and continues from the last entry in the file. An entry that would have to
/// wait longer than a moment for the lock counts as missing.
#[derive(Debug)]
pub struct Audit {
    folder: StateFolder,
    rotation: Rotation,
    lock: File,
    /// Whether another process had the lock for too long at the last entry. Then it is not waited for.
    is_held: bool,
    open: Option<Open>,
    /// Entries that could not be written since the last one that could.
    missed: u64,
    /// Whether the head could be written with the last entry.
    head_is_written: bool,
    syncer: Syncer,
}

/// The files that are written, as this process left them.
#[derive(Debug)]
struct Open {
    file: File,
    /// Identifies the file: another file may have its name by now.
    inode: u64,
    length: u64,
    head_file: File,
    head_inode: u64,
    /// The number of the first entry that is kept.
    first: u64,
    /// The number of the last entry that was known to be on the disk when the files were opened.
    synced: u64,
    /// The last entry's number and hash.
    last: (u64, Link),
    /// Bytes of an incomplete line that were removed from its end and are not in an entry yet.
    torn: u64,
    /// Entries that the machine lost when it failed, and that are not in an entry yet.
    lost: u64,
    /// Why the next entry must say that the head is kept.
    says_head: Option<Since>,
}

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Its folder cannot be used.
    #[error("cannot open the audit log")]
    Folder(#[from] StateError),
    /// A file could not be opened or written.
    #[error("cannot open the audit log {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

impl Audit {
    /// Opens the log in `folder`, and creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self, AuditError> {
        Self::within(&StateFolder::open(folder)?, Rotation::default())
    }

    /// The same in an open folder, with another rotation.
    pub fn within(folder: &StateFolder, rotation: Rotation) -> Result<Self, AuditError> {
        let failed = |name: &str| {
            let path = folder.path_of(name);
            move |error| AuditError::Io(path, error)
        };
        // Only its owner may open it: while another user held the lock, every entry would be missing.
        let lock = folder.updated_file(LOCK).map_err(failed(LOCK))?;
        let syncer = Syncer::start().map_err(failed(files::CURRENT))?;
        let mut log = Self {
            folder: folder.clone(),
            rotation,
            lock,
            is_held: false,
            open: None,
            missed: 0,
            head_is_written: true,
            syncer,
        };
        // While another process has the lock, the first entry opens the files. A restore of limits must
        // not wait for that process.
        let opened = log.locked(1, |log| catch_up(&mut log.open, &log.folder).map(drop));
        opened.unwrap_or(Ok(())).map_err(failed(files::CURRENT))?;
        Ok(log)
    }

    /// Appends an entry with the present time. A failure is counted and logged, and never ends a
    /// run. The next entry that can be written is preceded by the number of those missing.
    pub fn write(&mut self, entry: &Entry) {
        match self.append_locked(entry) {
            Ok(()) if self.missed > 0 => {
                info!("audit log: writing works again; {} entries are missing", self.missed);
                self.missed = 0;
            }
            Ok(()) => {}
            Err(error) => {
                self.missed += 1;
                if self.missed == 1 {
                    let path = self.folder.path_of(files::CURRENT);
                    warn!("cannot write {}, entries are lost: {error}", path.display());
                }
            }
        }
    }

    /// Appends an entry. A lock that was held too long is tried only once: entries may come in numbers.
    fn append_locked(&mut self, entry: &Entry) -> io::Result<()> {
        let tries = if self.is_held { 1 } else { MAX_TRIES };
        let appended = self.locked(tries, |log| log.append(entry));
        self.is_held = appended.is_none();
        appended.unwrap_or_else(|| {
            let why = format!("another process holds {LOCK}; see that it runs, or end it");
            Err(io::Error::new(io::ErrorKind::WouldBlock, why))
        })
    }

    /// Works under the lock; `None` if another process still has it after so many tries.
    fn locked<T>(
        &mut self,
        tries: u32,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        for left in (0..tries).rev() {
            match self.lock.try_lock() {
                Ok(()) => {
                    let done = work(self);
                    return Some(self.lock.unlock().and(done));
                }
                Err(TryLockError::WouldBlock) if left > 0 => std::thread::park_timeout(TRY_PAUSE),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Some(Err(error)),
            }
        }
        None
    }

    fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let open = catch_up(&mut self.open, &self.folder)?;
        if open.length >= self.rotation.size {
            self.folder.rename(files::CURRENT, &files::set_aside(open.last.0))?;
            self.forget_oldest();
        }
        let open = catch_up(&mut self.open, &self.folder)?;
        let says_head = open.says_head.map(|since| Entry::HeadKept { since });
        let torn = (open.torn > 0).then_some(Entry::Torn { bytes: open.torn });
        let count = self.missed.saturating_add(open.lost);
        let missed = (count > 0).then_some(Entry::Missed { count });
        let (mut text, mut last) = (String::new(), open.last.clone());
        for entry in says_head.iter().chain(&torn).chain(&missed).chain([entry]) {
            let seq = last.0 + 1;
            let (line, hash) = record::seal(seq, unix_seconds(), &last.1, entry)?;
            if line.len() > files::MAX_LINE {
                return Err(io::Error::other("the entry exceeds the longest line allowed"));
            }
            text.push_str(&line);
            text.push('\n');
            last = (seq, hash);
        }
        open.file.write_all(text.as_bytes()).inspect_err(|_| {
            // If this fails as well, the next entry finds that the file's length has changed.
            drop(open.file.set_len(open.length));
        })?;
        open.length += u64::try_from(text.len()).map_err(io::Error::other)?;
        (open.last, open.torn, open.lost, open.says_head) = (last, 0, 0, None);
        let written = open.write_head(self.syncer.synced());
        self.syncer.written(&open.file, &open.head_file, open.last.0);
        if let Err(error) = &written
            && self.head_is_written
        {
            let path = self.folder.path_of(chain_head::FILE);
            warn!("cannot write {}, the end of the audit log: {error}", path.display());
        }
        self.head_is_written = written.is_ok();
        Ok(())
    }

    /// Removes files beyond those that are kept. The head records that before: a log that has more than
    /// the head requires is not broken.
    fn forget_oldest(&mut self) {
        let older = files::older(&self.folder).unwrap_or_default();
        let surplus = older.len().saturating_sub(self.rotation.kept);
        let Some(last) = surplus.checked_sub(1).and_then(|at| older.get(at)) else { return };
        if let (Some(open), Some(last)) = (&mut self.open, files::last_of(last)) {
            open.first = last.saturating_add(1);
            if let Err(error) = open.write_head(self.syncer.synced()) {
                warn!("cannot write {}, so no file is removed: {error}", chain_head::FILE);
                return;
            }
        }
        for name in older.iter().take(surplus) {
            if let Err(error) = self.folder.remove(name) {
                warn!("cannot remove {}: {error}", self.folder.path_of(name).display());
            }
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Some(open) = &self.open
            && let Err(error) = open.file.sync_data().and_then(|()| open.head_file.sync_data())
        {
            warn!("audit log: the last entries may not have reached the disk: {error}");
        }
        if self.missed > 0 {
            warn!("audit log: the last {} entries are missing", self.missed);
        }
    }
}

/// The files as they are now. Another process may have appended to the log, or set it aside.
fn catch_up<'a>(left: &'a mut Option<Open>, folder: &StateFolder) -> io::Result<&'a mut Open> {
    let now = |name: &str| folder.inode_and_length(name).ok().flatten();
    let before = left.take();
    let same = before.as_ref().is_some_and(|open| {
        now(files::CURRENT) == Some((open.inode, open.length))
            && now(chain_head::FILE).is_some_and(|(inode, _)| inode == open.head_inode)
    });
    let open = match before {
        Some(open) if same => open,
        before => match Open::new(folder, before.as_ref()) {
            Ok(open) => open,
            Err(error) => {
                *left = before;
                return Err(error);
            }
        },
    };
    Ok(left.insert(open))
}

impl Open {
    /// Opens the files. `before` is what this process has written last, if anything.
    fn new(folder: &StateFolder, before: Option<&Self>) -> io::Result<Self> {
        let file = folder.appended_file(files::CURRENT)?;
        let metadata = file.metadata()?;
        let (last, torn) = end_of(&file)?;
        let length = metadata.len().saturating_sub(torn);
        if torn > 0 {
            file.set_len(length)?;
        }
        // The first line of a file continues the chain of the file before.
        let last = match last {
            Some(last) => last,
            None => before_current(folder)?.unwrap_or_else(|| (0, Link::none())),
        };
        let read = ChainHead::read(folder);
        let head_file = folder.updated_file(chain_head::FILE)?;
        let head_inode = head_file.metadata()?.ino();
        let says_head = (length == 0).then_some(Since::NextFile);
        let first = last.0.saturating_add(1);
        let mut open = Self {
            file,
            inode: metadata.ino(),
            length,
            head_file,
            head_inode,
            first,
            synced: 0,
            last,
            torn,
            lost: 0,
            says_head,
        };
        match (read, before) {
            (Ok(Some(head)), _) => open.follow(&head, folder),
            // What this process has written is not in doubt.
            (Ok(None) | Err(_), Some(before)) => {
                warn!(
                    "{} was lost, and is written again",
                    folder.path_of(chain_head::FILE).display()
                );
                let head = ChainHead::new(before.first, before.last.clone(), 0);
                open.follow(&head, folder);
            }
            (read, None) => open.begin(read.err(), folder)?,
        }
        if let Err(error) = open.write_head(0) {
            // As for an entry: a full disk ends nothing.
            warn!("cannot write {}: {error}", folder.path_of(chain_head::FILE).display());
        }
        Ok(open)
    }

    /// Continues the chain where its head says. If entries are missing there, the next entry does
    /// not follow the last one in the file, so that a check finds the place.
    fn follow(&mut self, head: &ChainHead, folder: &StateFolder) {
        (self.first, self.synced) = (head.first, head.synced);
        let (last, hash) = &self.last;
        if *last > head.last || (*last, hash) == (head.last, &head.hash) {
            return;
        }
        let missing = head.last.saturating_sub(*last);
        let path = folder.path_of(files::CURRENT);
        if head.allows_loss_after(*last) {
            warn!(
                "the last {missing} entries of {} were not on the disk when the machine failed",
                path.display()
            );
            self.lost = missing;
        } else {
            warn!(
                "the audit log {} does not end with entry {}, the last one that was written: \
                 run `paceline audit verify`",
                path.display(),
                head.last
            );
            self.last = (head.last, head.hash.clone());
        }
    }

    /// Begins to keep the head of a log that has none.
    fn begin(&mut self, unreadable: Option<io::Error>, folder: &StateFolder) -> io::Result<()> {
        self.first = first_of(folder)?.unwrap_or(self.last.0.saturating_add(1));
        if self.last.0 == 0 && unreadable.is_none() {
            self.says_head = Some(Since::Began);
            return Ok(());
        }
        let path = folder.path_of(chain_head::FILE);
        let was_kept = unreadable.is_some() || read::head_was_kept(folder)?;
        if was_kept {
            let why =
                unreadable.map_or_else(|| "it is missing".to_owned(), |error| error.to_string());
            warn!("{}: {why}: entries may have been cut from the audit log", path.display());
        } else {
            warn!(
                "the audit log {} was written by version 0.1.0, without a record of its end: \
                 it is accepted as it is, and its end is kept in {} from now on",
                folder.path_of(files::CURRENT).display(),
                chain_head::FILE
            );
        }
        self.says_head = Some(if was_kept { Since::Lost } else { Since::Began });
        Ok(())
    }

    fn write_head(&self, synced: u64) -> io::Result<()> {
        let synced = self.synced.max(synced);
        ChainHead::new(self.first, self.last.clone(), synced).write(&self.head_file)
    }
}

/// The last entry in the files that were set aside.
fn before_current(folder: &StateFolder) -> io::Result<Option<(u64, Link)>> {
    for name in files::older(folder)?.iter().rev() {
        let Some(file) = folder.file(name)? else { continue };
        if let (Some(last), _) = end_of(&file)? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// The number of the first entry in any file.
fn first_of(folder: &StateFolder) -> io::Result<Option<u64>> {
    for (_, file) in files::all(folder)? {
        let mut lines = Lines::new(file);
        while let Some(piece) = lines.next()? {
            let Piece::Line(line) = piece else { continue };
            if let Ok(head) = serde_json::from_str::<Head>(&line) {
                return Ok(Some(head.seq));
            }
        }
    }
    Ok(None)
}

/// The last entry of a file, and how many bytes of an incomplete line follow it.
fn end_of(file: &File) -> io::Result<(Option<(u64, Link)>, u64)> {
    let length = file.metadata()?.len();
    let longest = u64::try_from(files::MAX_LINE).map_err(io::Error::other)?;
    // An incomplete line is shorter than the longest line, and the line before it is complete.
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
