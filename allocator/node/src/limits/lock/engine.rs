//! The lock of an engine, in the folder of the machine's locks.

use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::warn;

use super::super::originals::{OriginalsError, at};
use super::Scope;
use super::file::{Failed, Lock, first_line, open_to_read, text_of_holder};
use super::folder::{FolderLock, KNOWS_ENGINE_LOCK};

/// The most characters of an engine's data folder in the name of its lock.
const MAX_SUFFIX: usize = 100;

/// The lock of an engine, and the folder with the locks of its containers.
#[derive(Debug)]
pub(in crate::limits) struct EngineLock {
    pub(super) folder: PathBuf,
    /// `None` for a restore.
    lock: Option<Lock>,
    pub(super) engine: String,
    /// The state folder of this process.
    pub(super) state: String,
    /// This process, and its purpose.
    pub(super) holder: String,
}

impl EngineLock {
    /// Takes the lock of `engine` in `folder`. Returns `None`, with a warning, if the folder cannot be
    /// used: then only the state folder is locked.
    pub(in crate::limits) fn take(
        folder: &Path,
        (engine, data): (&str, &str),
        (scope, wait): (Scope, Duration),
        (state, own): (&Path, &FolderLock),
    ) -> Result<Option<Self>, OriginalsError> {
        let unusable = |error: &io::Error| {
            warn!(
                "cannot lock the container engine in {}: {error}; an allocator with another state \
                 folder is not noticed",
                folder.display()
            );
        };
        if let Err(error) = open_folder(folder) {
            unusable(&error);
            return Ok(None);
        }
        refuse_older(folder, engine, &own.lock.path)?;
        let path = engine_file(folder, engine, data);
        let taken = match scope {
            Scope::All => Lock::take_at_start(&path, false, wait).map(Some),
            Scope::Some => Lock::take_at_start(&path, true, wait).map(Some),
            Scope::Recorded => Ok(None),
        };
        let lock = match taken {
            Ok(lock) => lock,
            Err(Failed::Io(error)) => {
                unusable(&error);
                return Ok(None);
            }
            Err(held @ Failed::Held(_)) => return Err(held.at(&path)),
        };
        let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
        let mut engine_lock = Self {
            folder: folder.to_owned(),
            lock,
            engine: engine.to_owned(),
            state: state.display().to_string(),
            holder: first_line(&own.text).to_owned(),
        };
        let named = engine_lock.named();
        if let Some(lock) = &mut engine_lock.lock
            && let Err(error) = lock.write(&named)
        {
            warn!("cannot write {}: {error}", path.display());
        }
        Ok(Some(engine_lock))
    }

    /// The text in the engine's lock.
    fn named(&self) -> String {
        format!("{}, state folder {}\n", self.holder, self.state)
    }

    /// Creates the folder again if it was removed, and takes the engine's lock again if its file was.
    pub(in crate::limits) fn renew(&mut self) -> Result<(), OriginalsError> {
        self.open_folder()?;
        let named = self.named();
        self.lock.as_mut().map_or(Ok(()), |lock| lock.renew(&named))
    }

    /// Creates the folder of the locks if it is missing.
    pub(super) fn open_folder(&self) -> Result<(), OriginalsError> {
        open_folder(&self.folder).map_err(at(&self.folder))
    }
}

impl Drop for EngineLock {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            lock.remove();
        }
    }
}

/// The file of an engine's lock.
pub(in crate::limits) fn engine_file(folder: &Path, engine: &str, data: &str) -> PathBuf {
    folder.join(format!("engine-{engine}{}.lock", suffix(data)))
}

/// The end of the name of an engine's lock, by the folder of its data. Engines that are started by hand
/// on one machine share an id, since it is kept in `/etc/docker`.
fn suffix(data: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let last: Vec<char> = data.chars().rev().take(MAX_SUFFIX).collect();
    last.into_iter().rev().map(plain).collect()
}

/// Creates the folder of the locks, and checks that it is ours alone.
fn open_folder(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o022 != 0 {
        let why = format!("expected a folder of user {own} that no other user can write to");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Refuses to start beside version 0.1.0 with the default state folder: it locks only that one.
fn refuse_older(folder: &Path, engine: &str, own: &Path) -> Result<(), OriginalsError> {
    let Some(path) = folder.parent().map(|state| state.join(engine).join("lock")) else {
        return Ok(());
    };
    let same = fs::canonicalize(&path).ok() == fs::canonicalize(own).ok();
    let Ok(file) = open_to_read(&path) else { return Ok(()) };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) if !same => {
            let holder = text_of_holder(&file);
            if holder.contains(KNOWS_ENGINE_LOCK) {
                return Ok(());
            }
            Err(OriginalsError::Held { holder, lock: path })
        }
        _ => Ok(()),
    }
}
