//! The state on disk: the limits that containers had before the allocator's first write to them, and
//! its last write to each.
//!
//! ```text
//! STATE/                   one folder for root, one for each other user
//!   audit.jsonl, …         the audit log and the head of its chain (`paceline_api::audit`)
//!   ENGINE/                one folder for each engine
//!     lock                 held by the one allocator that uses this folder (`lock`)
//!     ID.json              the owner's limits of container ID (`record`, `record_files`)
//!     ID.last              our last write to it
//!     moves/ID.json        the unfinished move of container ID (`migration::journal`)
//! /var/lib/paceline/locks/ one for the machine (`lock`)
//!   engine-ENGINE-DATA.lock  held by the allocator of all containers, or by confined ones
//!   ID.claim               held by the allocator that writes to container ID
//! ```
//!
//! Invariants, which `tests/histories.rs` checks in random histories with crashes at every step:
//!
//! 1. A container has `ID.json` before the first write to it, and until nothing of ours is left in it.
//! 2. Before each write, `ID.last` has every value that the write may leave. So a value that is in
//!    neither file is the owner's, however the process ended, and becomes the new original (`follow`).
//! 3. The files survive what the write survives: a write by the engine outlives the machine, so they
//!    are on the disk before it. A control group does not, so there they need not be.
//! 4. During a run the memory is the truth. A file that was removed or changed is written again. A new
//!    limit needs the files, and a restore does not: it goes on when the disk fails.
//! 5. A file that cannot be read is not an absent one: its container is named and left alone.
//! 6. A record ends only when its container has its original limits or is known to be gone: the engine
//!    reports its removal, or does not know it for a long time and it has no control group. A record
//!    without a write by the engine also ends with the control group.
//! 7. A record belongs to a container, whatever the engine calls itself (`leftovers`).
//! 8. Only the holder of `ID.claim` writes to container ID. A claim without a process names the state
//!    folder that has the container's originals, so that another allocator takes no limit of ours for
//!    an original. For a job outside containers, allocators of other users see a mark beside its record.

mod change;
mod error;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use paceline_api::clock::unix_seconds;
use paceline_api::state_folder::StateFolder;
use paceline_runtime::processes::{is_job, mark_of_another};
use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

use super::lock::{self, Claim, EngineLock, FolderLock, ReadOnly};
use super::record_files::{RecordFiles, Seal};

pub use super::lock::{START_WAIT, Scope};
pub use super::record::{Absence, LastWrite, Original, Record};
pub use error::OriginalsError;

/// The folder of the machine's locks.
pub const LOCKS: &str = "/var/lib/paceline/locks";

/// The file of an engine's lock in the folder `locks`. `data` is the folder of the engine's data.
pub fn engine_lock(locks: &Path, engine: &str, data: &str) -> PathBuf {
    lock::engine_file(locks, &plain_id(engine), data)
}

/// An engine's id as a part of a file's name.
fn plain_id(engine: &str) -> String {
    engine.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The records of one engine's containers. One process at a time holds them.
#[derive(Debug)]
pub struct Originals {
    state: PathBuf,
    engine: String,
    pub(super) folder: PathBuf,
    lock: Mutex<FolderLock>,
    engine_lock: Mutex<Option<EngineLock>>,
    kept: Mutex<BTreeMap<String, Kept>>,
    /// How many calls that write files are under way in other threads.
    busy: AtomicUsize,
}

/// What is known of one container's record.
#[derive(Debug)]
enum Kept {
    Known(Box<Known>),
    /// Its file cannot be used, for this reason.
    Unreadable {
        why: String,
        absent: Option<Absence>,
    },
    /// Nothing of ours is left in it, and its files could not be removed. For all others there is no record.
    Ended(Option<Claim>),
}

#[derive(Debug)]
struct Known {
    record: Record,
    /// The number of the last write in the file.
    number: u64,
    /// `None` if the file of the owner's limits has to be written again.
    seal: Option<Seal>,
    claim: Option<Claim>,
}

impl Originals {
    /// Opens the records for the engine `engine` below `state`, and creates the folder if it is missing.
    /// The lock's file names `purpose`.
    pub fn open(state: &Path, engine: &str, purpose: &str) -> Result<Self, OriginalsError> {
        Self::open_as(state, (engine, purpose), ReadOnly::Refused)
    }

    /// The same for a restore, which also works on a read-only file system.
    pub fn open_to_restore(
        state: &Path,
        engine: &str,
        purpose: &str,
    ) -> Result<Self, OriginalsError> {
        Self::open_as(state, (engine, purpose), ReadOnly::Allowed)
    }

    fn open_as(
        state: &Path,
        (engine, purpose): (&str, &str),
        read_only: ReadOnly,
    ) -> Result<Self, OriginalsError> {
        let plain = plain_id(engine);
        // Private, and checked: below it, no other user can have put anything.
        let private = StateFolder::open(state)?;
        let folder = private.subfolder(&plain).map_err(at(&private.path_of(&plain)))?;
        let folder = folder.path().to_owned();
        let lock = FolderLock::take(&folder, purpose, read_only)?;
        // A killed run may have written files here that are not synced yet.
        match fs::File::open(&folder).and_then(|it| it.sync_all()) {
            Err(error) if read_only == ReadOnly::Refused => return Err(at(&folder)(error)),
            Err(_) | Ok(()) => {}
        }
        let originals = Self {
            state: state.to_owned(),
            engine: plain,
            folder,
            lock: Mutex::new(lock),
            engine_lock: Mutex::default(),
            kept: Mutex::default(),
            busy: AtomicUsize::new(0),
        };
        originals.clear_unfinished()?;
        originals.read()?;
        Ok(originals)
    }

    /// The same, also holding the lock of the engine in the machine's folder of locks. `data` is the
    /// folder of the engine's data. A lock that is held is waited for, as long as `wait`.
    pub fn lock_engine(
        self,
        locks: &Path,
        data: &str,
        (scope, wait): (Scope, Duration),
    ) -> Result<Self, OriginalsError> {
        let engine_lock = {
            let own = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            EngineLock::take(locks, (&self.engine, data), (scope, wait), (&self.state, &own))?
        };
        let originals = Self { engine_lock: Mutex::new(engine_lock), ..self };
        // A killed run has left the locks of its containers.
        for id in originals.ids() {
            if let Err(error) = originals.claim(&id) {
                warn!("cannot restore container {id} now: {error}");
            }
        }
        Ok(originals)
    }

    /// Removes incomplete files of a killed run or of a machine that went down. An empty file from
    /// before the boot was not synced, so all that was written by then ended with the machine. A later
    /// one was emptied by someone else.
    fn clear_unfinished(&self) -> Result<(), OriginalsError> {
        let boot = booted_at();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let entry = entry.map_err(at(&self.folder))?;
            let path = entry.path();
            let is = |extension: &str| path.extension().is_some_and(|it| it == extension);
            let lost = || {
                let file = entry.metadata().ok().filter(|file| file.len() == 0);
                let written = file.and_then(|file| file.modified().ok());
                let written = written.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                written.is_some_and(|written| written < boot)
            };
            let alone = || is("last") && !path.with_extension("json").exists();
            if (is("part") || alone() || (is("json") && lost()))
                && let Err(error) = fs::remove_file(&path)
            {
                // The records of the other containers can be used all the same.
                warn!("cannot remove {}: {error}", path.display());
            }
        }
        Ok(())
    }

    /// Reads all records. One that cannot be used concerns its container alone.
    fn read(&self) -> Result<(), OriginalsError> {
        let mut kept = self.kept();
        for id in ids_in(&self.folder)? {
            let files = self.files(&id);
            let one = match files.read_original() {
                Ok(original) => Kept::Known(Box::new(Known::read(&files, original))),
                Err(error) => {
                    let why = super::error::chain(&error);
                    warn!("container {id} is left alone: {why}");
                    Kept::Unreadable { why, absent: None }
                }
            };
            kept.insert(id, one);
        }
        Ok(())
    }

    /// The folder. Other data that the same lock protects may lie below it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The state folder, with the folders of all engines.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn engine_lock(&self) -> MutexGuard<'_, Option<EngineLock>> {
        self.engine_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of one container; `None` if nothing was written to it. A file that could not be read
    /// is read again, since a person may have mended or removed it.
    pub fn get(&self, id: &str) -> Result<Option<Record>, OriginalsError> {
        let mut kept = self.kept();
        let why = match kept.get(id) {
            Some(Kept::Known(known)) => return Ok(Some(known.record.clone())),
            Some(Kept::Unreadable { why, .. }) => why.clone(),
            Some(Kept::Ended(_)) | None => return Ok(None),
        };
        let files = self.files(id);
        match files.read_original() {
            Ok(original) => {
                let known = Known::read(&files, original);
                let record = known.record.clone();
                kept.insert(id.to_owned(), Kept::Known(Box::new(known)));
                Ok(Some(record))
            }
            Err(OriginalsError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                kept.remove(id);
                Ok(None)
            }
            Err(_) => Err(OriginalsError::Unreadable { path: files.path().to_owned(), why }),
        }
    }

    /// The ids of all containers with a record, readable or not.
    pub fn ids(&self) -> Vec<String> {
        let kept = self.kept();
        let recorded = kept.iter().filter(|(_, one)| !matches!(one, Kept::Ended(_)));
        recorded.map(|(id, _)| id.clone()).collect()
    }

    /// Takes the lock of a container with a record, unless it is held already.
    fn claim(&self, id: &str) -> Result<(), OriginalsError> {
        let has = |kept: &Kept| matches!(kept, Kept::Known(known) if known.claim.is_none());
        if self.kept().get(id).is_some_and(has) {
            let claim = self.take_claim(id, true)?;
            self.change(id, |known| known.claim = claim);
        }
        Ok(())
    }

    /// Takes the lock of a container for a new record. It is held already if the files of an earlier one
    /// could not be removed; these must be gone first.
    fn take_claim(&self, id: &str, recorded: bool) -> Result<Option<Claim>, OriginalsError> {
        let mut kept = self.kept();
        if matches!(kept.get(id), Some(Kept::Ended(_))) {
            self.files(id).remove()?;
            if let Some(Kept::Ended(Some(mut claim))) = kept.remove(id) {
                claim.is_restored();
                return Ok(Some(claim));
            }
        }
        drop(kept);
        if !recorded
            && is_job(id)
            && let Some(mark) = mark_of_another(id)
        {
            return Err(OriginalsError::Marked(mark));
        }
        self.engine_lock().as_ref().map(|engine| engine.claim(id, recorded)).transpose()
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Known)) {
        if let Some(Kept::Known(known)) = self.kept().get_mut(id) {
            change(known);
        }
    }

    fn files(&self, id: &str) -> RecordFiles {
        RecordFiles::new(&self.folder, id)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(&self.busy)
    }
}

impl Known {
    fn read(files: &RecordFiles, original: Original) -> Self {
        let (number, last) = files.read_last().map_or((0, None), |(n, last)| (n, Some(last)));
        Self { record: Record { original, last }, number, seal: files.seal(), claim: None }
    }
}

/// A call that writes files. While there is one, the files may differ from the memory.
#[derive(Debug)]
struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The ids of all containers with a record in a folder.
pub(super) fn ids_in(folder: &Path) -> Result<Vec<String>, OriginalsError> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let name = entry.map_err(at(folder))?.file_name();
        ids.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned));
    }
    ids.sort();
    Ok(ids)
}

/// When the machine was started, as a time since 1970.
fn booted_at() -> Duration {
    let up = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
    let now = Duration::try_from_secs_f64(unix_seconds()).unwrap_or_default();
    now.saturating_sub(up)
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> OriginalsError + use<> {
    let path = path.to_owned();
    move |error| OriginalsError::Io(path.clone(), error)
}

#[cfg(test)]
mod tests;
