//! One lock's file: the kernel holds the lock for the open file, and its text names the holder.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::super::originals::{OriginalsError, at};
use super::super::record_files::no_link;

/// How often a lock whose file is replaced meanwhile is tried again.
const MAX_TRIES: usize = 16;
/// How often the empty file of a lock is read again that another process has just taken, and the pause. It
/// is short: on a full disk the file stays empty, and the caller may be the controller.
const MAX_LOOKS: u32 = 20;
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// The longest text of a lock's file that is read, in bytes.
const MAX_TEXT: u64 = 4096;

/// An open lock.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) path: PathBuf,
    pub(super) file: File,
    shared: bool,
    /// Whether its text cannot be written, since its file system is read-only.
    pub(super) read_only: bool,
}

/// Why a lock cannot be taken.
pub(super) enum Failed {
    /// Another process has it: its file.
    Held(File),
    Io(io::Error),
}

impl Lock {
    /// Takes the lock at `path`, shared or alone.
    pub(super) fn take(path: &Path, shared: bool) -> Result<Self, Failed> {
        for _ in 0..MAX_TRIES {
            let (file, read_only) = open(path).map_err(Failed::Io)?;
            let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Failed::Held(file)),
                Err(TryLockError::Error(error)) => return Err(Failed::Io(error)),
            }
            // Its last holder may have removed the file between our two calls.
            let lock = Self { path: path.to_owned(), file, shared, read_only };
            if lock.is_at_its_path() {
                return Ok(lock);
            }
        }
        Err(Failed::Io(io::ErrorKind::ResourceBusy.into()))
    }

    /// The same, at a start: it waits for one who only looks.
    pub(super) fn take_at_start(path: &Path, shared: bool, wait: Duration) -> Result<Self, Failed> {
        for _ in 0..wait.as_millis() / LOOK_PAUSE.as_millis() {
            match Self::take(path, shared) {
                Err(Failed::Held(_)) => std::thread::park_timeout(LOOK_PAUSE),
                taken => return taken,
            }
        }
        Self::take(path, shared)
    }

    pub(super) fn is_at_its_path(&self) -> bool {
        let number = |file: fs::Metadata| (file.dev(), file.ino());
        let there = fs::symlink_metadata(&self.path).map(number);
        let own = self.file.metadata().map(number);
        own.ok().zip(there.ok()).is_some_and(|(own, there)| own == there)
    }

    /// Writes its text, where that is possible.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.file.set_len(0)?;
        io::Seek::rewind(&mut self.file)?;
        self.file.write_all(text.as_bytes())
    }

    /// Takes the lock again if its file was removed, and writes `text` into it. Otherwise another process
    /// could take it.
    pub(super) fn renew(&mut self, text: &str) -> Result<(), OriginalsError> {
        if self.is_at_its_path() {
            return Ok(());
        }
        let taken = Self::take(&self.path, self.shared).map_err(|failed| failed.at(&self.path))?;
        *self = taken;
        self.write(text).map_err(at(&self.path))
    }

    /// Removes the file, if no other process holds the lock.
    pub(super) fn remove(&self) {
        if self.file.try_lock().is_ok() && self.is_at_its_path() {
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Failed {
    pub(super) fn at(self, path: &Path) -> OriginalsError {
        let lock = path.to_owned();
        match self {
            Self::Held(file) => {
                let holder = text_of_holder(&file);
                OriginalsError::Held { holder: first_line(&holder).to_owned(), lock }
            }
            Self::Io(error) => OriginalsError::Io(lock, error),
        }
    }
}

/// Opens the file of a lock, and creates it if it is missing. Returns whether it can only be read.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    match options.custom_flags(no_link()).open(path) {
        Ok(file) => regular(file).map(|file| (file, false)),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            open_to_read(path).map(|file| (file, true))
        }
        // The kernel's own words for a link are "too many levels of symbolic links".
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Err(not_regular()),
        Err(error) => Err(error),
    }
}

/// Opens the file of a lock to read it.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    regular(File::options().read(true).custom_flags(no_link()).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file; remove this file")
}

/// The text of a lock's file.
pub(super) fn text(file: &File) -> String {
    let mut text = String::new();
    let _ignored: Result<usize, io::Error> = file.take(MAX_TEXT).read_to_string(&mut text);
    text.trim().to_owned()
}

/// The text of a lock's file that another process holds.
pub(super) fn text_of_holder(file: &File) -> String {
    text_after(file, MAX_LOOKS)
}

/// The same. The process writes the text after it has taken the lock, so an empty file is read again,
/// `looks` times at most.
pub(super) fn text_after(mut file: &File, looks: u32) -> String {
    let mut found = text(file);
    for _ in 0..looks {
        if !found.is_empty() || io::Seek::rewind(&mut file).is_err() {
            break;
        }
        std::thread::park_timeout(LOOK_PAUSE);
        found = text(file);
    }
    found
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
