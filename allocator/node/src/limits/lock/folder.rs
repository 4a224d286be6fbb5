//! The lock of a state folder.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use paceline_api::clock::unix_seconds;
use paceline_api::state_folder::make_private;

use super::super::originals::{OriginalsError, at};
use super::START_WAIT;
use super::file::{Failed, Lock};

/// The second line of a folder's lock, of a version that knows the engine's lock: version 0.1.0 locks
/// its folder alone.
pub(super) const KNOWS_ENGINE_LOCK: &str = "locks 2";

/// Whether a state folder on a read-only file system is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limits) enum ReadOnly {
    /// A run would record nothing, so it must not start.
    Refused,
    /// A restore needs the records alone.
    Allowed,
}

/// The lock of a state folder, for one engine.
#[derive(Debug)]
pub(in crate::limits) struct FolderLock {
    pub(super) lock: Lock,
    pub(super) text: String,
}

impl FolderLock {
    /// Takes the lock in `folder`, at a start.
    pub(in crate::limits) fn take(
        folder: &Path,
        purpose: &str,
        read_only: ReadOnly,
    ) -> Result<Self, OriginalsError> {
        let take = |path: &Path, shared| Lock::take_at_start(path, shared, START_WAIT);
        let taken = Self::taken_by(take, folder, purpose)?;
        if taken.lock.read_only && read_only == ReadOnly::Refused {
            return Err(OriginalsError::Io(
                taken.lock.path,
                io::ErrorKind::ReadOnlyFilesystem.into(),
            ));
        }
        Ok(taken)
    }

    /// Takes the lock in the folder of another engine, for an instant.
    pub(in crate::limits) fn take_to_search(folder: &Path) -> Result<Self, OriginalsError> {
        Self::taken_by(Lock::take, folder, "a search for leftovers")
    }

    fn taken_by(
        take: impl Fn(&Path, bool) -> Result<Lock, Failed>,
        folder: &Path,
        purpose: &str,
    ) -> Result<Self, OriginalsError> {
        let path = folder.join("lock");
        let text = format!("{}\n{KNOWS_ENGINE_LOCK}\n", holder(purpose));
        let mut lock = take(&path, false).map_err(|failed| failed.at(&path))?;
        lock.write(&text).map_err(at(&path))?;
        Ok(Self { lock, text })
    }

    /// Takes the lock again if its file was removed; otherwise another allocator could take it.
    pub(in crate::limits) fn renew(&mut self) -> Result<(), OriginalsError> {
        if let Some(folder) = self.lock.path.parent().filter(|_| !self.lock.is_at_its_path()) {
            make_private(folder).map_err(at(folder))?;
        }
        self.lock.renew(&self.text)
    }
}

/// The process that holds a lock, its machine, its start and its `purpose`.
fn holder(purpose: &str) -> String {
    let began = UNIX_EPOCH + Duration::try_from_secs_f64(unix_seconds()).unwrap_or_default();
    let began = humantime::format_rfc3339_seconds(began);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (host, process) = (host.trim(), std::process::id());
    format!("process {process} on {host} since {began}, {purpose}")
}
