//! Records in the folders of other engines. An engine may call itself by another id after a while, so
//! that its containers' records lie in a folder that no run would read.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use paceline_api::state_folder::make_private;
use paceline_cgroup::Found;
use tracing::{info, warn};

use super::actuator::silent;
use super::error::chain;
use super::lock::{Abandoned, EngineLock, FolderLock};
use super::originals::{Originals, OriginalsError, Record, ids_in};
use super::record_files::RecordFiles;
use super::target::Target;
use super::{Actuator, LimitError};

/// A record in the folder of another engine that concerns no container of this one, or one that is
/// missing from its state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The container's id.
    pub id: String,
    /// The file of the record, or the state folder that it is missing from.
    pub file: PathBuf,
    /// Why it was not taken over.
    pub why: NotTaken,
}

/// Why a record was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It cannot be used.
    Unusable(String),
    /// It is missing from its state folder. The container's lock, this file, names the folder.
    Lost(PathBuf),
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, file, why } = self;
        let (id, file) = (paceline_runtime::short(id), file.display());
        write!(f, "cannot restore container {id}: ")?;
        match why {
            NotTaken::Unusable(why) => write!(f, "{why}; its original limits are in {file}"),
            NotTaken::Lost(lock) => write!(
                f,
                "an earlier run has limited it, and the state folder {file} has no record of it; put the \
                 folder back and restore from it, or remove {} if the limits are right",
                lock.display()
            ),
        }
    }
}

impl Actuator {
    /// Takes over the records and unfinished moves of containers that this engine knows from the folders
    /// of other engines, unless another allocator uses these. Returns the records that stay there, and those
    /// whose state folder is missing.
    pub async fn adopt_leftovers(&self) -> Vec<Leftover> {
        let mut left = Vec::new();
        for folder in self.originals.other_folders() {
            match FolderLock::take_to_search(&folder) {
                Ok(_lock) => {
                    left.extend(self.adopt_from(&folder).await);
                    self.adopt_moves(&folder).await;
                }
                Err(OriginalsError::Held { .. }) => {}
                Err(error) => warn!("cannot search for leftovers: {}", chain(&error)),
            }
        }
        left.extend(self.forget_claims().await);
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&left);
        left
    }

    /// The records of other engines that stay where they are, and those that are lost.
    pub fn leftovers(&self) -> Vec<Leftover> {
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the record of a container that the engine did not know when leftovers were searched for,
    /// and knows now. Otherwise a limit of ours would be recorded as the original one.
    pub(super) async fn adopt_late(&self, target: &Target) -> Result<(), LimitError> {
        let id = target.id();
        let usable = |it: &Leftover| it.id == id && matches!(it.why, NotTaken::Unusable(_));
        let Some(leftover) = self.leftovers().into_iter().find(usable) else {
            return Ok(());
        };
        let folder = leftover.file.parent().unwrap_or(&leftover.file);
        let _lock = FolderLock::take_to_search(folder)
            .map_err(|error| LimitError::Refused { name: target.name(), refused: chain(&error) })?;
        // Without the file, another process has restored the container.
        if leftover.file.exists()
            && let Err(why) = self.adopt(id, &RecordFiles::new(folder, id)).await
        {
            let unusable = OriginalsError::Unreadable { path: leftover.file, why };
            return Err(LimitError::LeftAlone(target.name(), unusable));
        }
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        leftovers.retain(|leftover| leftover.id != id);
        Ok(())
    }

    async fn adopt_from(&self, folder: &Path) -> Vec<Leftover> {
        let mut left = Vec::new();
        for id in ids_in(folder).unwrap_or_default() {
            let files = RecordFiles::new(folder, &id);
            if let Err(why) = self.adopt(&id, &files).await {
                let file = files.path().to_owned();
                left.push(Leftover { id, file, why: NotTaken::Unusable(why) });
            }
        }
        left
    }

    /// Takes over one record, or ends it if nothing of ours is left.
    async fn adopt(&self, id: &str, files: &RecordFiles) -> Result<(), String> {
        let original = files.read_original().map_err(|error| chain(&error))?;
        let (number, last) = files.read_last().map_or((0, None), |(n, last)| (n, Some(last)));
        let record = Record { original, last };
        let group = record.last.as_ref().and_then(|last| last.group.as_ref());
        let group = group.map(|group| group.find(&self.proc));
        match self.inspect_unless_silent(id).await {
            Ok(_) => {}
            Err(LimitError::Gone(_)) if record.is_of_engine() => {
                return Err("it belongs to another container engine".to_owned());
            }
            // A limit in files alone can be restored without an answer of the engine.
            Err(error) if record.is_of_engine() => return Err(chain(&error)),
            Err(error) => match group {
                Some(Found::Here(_)) => {}
                Some(Found::Ended | Found::Replaced(_)) => {
                    files.remove().map_err(|error| chain(&error))?;
                    if let Some(engine_lock) = self.originals.engine_lock().as_ref() {
                        engine_lock.remove_claim(id);
                    }
                    return Ok(());
                }
                Some(Found::Unseen) | None if matches!(error, LimitError::Gone(_)) => {
                    return Err("its control group cannot be seen from here".to_owned());
                }
                Some(Found::Unseen) | None => return Err(chain(&error)),
            },
        }
        if self.originals.get(id).map_err(|error| chain(&error))?.is_none() {
            let name = record.original.name.clone();
            self.on_disk(move |originals| originals.take_over(record, number))
                .await
                .map_err(|error| chain(&error))?;
            info!(
                "took over the original limits of container {name}: its engine has another id now"
            );
        }
        files.remove().map_err(|error| chain(&error))
    }

    /// Asks the engine about a container, unless it leaves requests unanswered.
    async fn inspect_unless_silent(&self, id: &str) -> Result<Target, LimitError> {
        if self.silence.lasts() {
            return Err(silent(paceline_runtime::short(id).to_owned()));
        }
        self.inspect(id).await
    }

    /// Takes over the unfinished moves of containers that this engine knows.
    async fn adopt_moves(&self, folder: &Path) {
        let (from, to) = (folder.join("moves"), self.originals.folder().join("moves"));
        for id in ids_in(&from).unwrap_or_default() {
            if self.inspect_unless_silent(&id).await.is_err() {
                continue;
            }
            let name = format!("{id}.json");
            let moved =
                make_private(&to).and_then(|()| fs::rename(from.join(&name), to.join(&name)));
            if let Err(error) = moved {
                warn!("cannot take over the unfinished move of container {id}: {error}");
            }
        }
    }

    /// Removes the locks of containers that were removed and whose state folder is lost. Returns those that
    /// exist: they have limits of ours, and the original ones are unknown here. A container that the engine
    /// does not know may come back with the engine's data, so its lock stays.
    async fn forget_claims(&self) -> Vec<Leftover> {
        let abandoned = self.originals.engine_lock().as_ref().map(EngineLock::abandoned);
        let mut lost = Vec::new();
        for Abandoned { id, state, claim } in abandoned.unwrap_or_default() {
            match self.inspect_unless_silent(&id).await {
                Err(LimitError::Gone(_)) => {
                    if self.was_removed(&id, 0.0).await
                        && let Some(engine_lock) = self.originals.engine_lock().as_ref()
                    {
                        engine_lock.remove_claim(&id);
                    }
                }
                // Each further request to an engine that does not answer would take as long.
                Err(error) => {
                    warn!("cannot search for lost records: {}", chain(&error));
                    break;
                }
                Ok(_) => lost.push(Leftover { id, file: state, why: NotTaken::Lost(claim) }),
            }
        }
        lost
    }
}

impl Originals {
    /// The folders of other engines in the state folder.
    fn other_folders(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.state()).into_iter().flatten().flatten();
        let is_one = |folder: &PathBuf| {
            folder != self.folder() && folder.is_dir() && (folder.join("lock").is_file())
        };
        let mut folders: Vec<PathBuf> =
            folders.map(|folder| folder.path()).filter(is_one).collect();
        folders.sort();
        folders
    }
}
