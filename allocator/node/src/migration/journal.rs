//! The journal of moves that are under way, which survives a crash. On one machine each move has a
//! file on the disk, complete or absent, which is updated before the next step begins.

use std::io;
use std::path::{Path, PathBuf};

use paceline_api::state_folder::{Durability, StateError, StateFolder};
use serde::{Deserialize, Serialize};

use super::Move;

/// The version of the files' format.
const FORMAT: u32 = 1;
/// The folder's name.
const FOLDER: &str = "moves";
/// The longest file, in bytes.
const MAX_LEN: u64 = 1 << 20;

/// A place where moves are recorded, so that unfinished ones are known after a crash.
pub trait Journal: Send + Sync {
    /// Records the present state of a move. On return it survives a crash.
    fn write(&self, plan: &Move) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// Removes a finished move.
    fn forget(&self, plan: &Move) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// All unfinished moves.
    fn pending(&self) -> impl Future<Output = Pending> + Send;
}

/// The folder of one engine's moves. The lock of the original limits protects it.
#[derive(Debug)]
pub struct Folder {
    folder: StateFolder,
}

/// The record of a move.
#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(flatten)]
    plan: &'a Move,
}

/// The part of a record that is read first: the rest depends on the format.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The unfinished moves.
#[derive(Debug, Default)]
pub struct Pending {
    /// The moves that could be read.
    pub plans: Vec<Move>,
    /// Why others could not be read.
    pub errors: Vec<JournalError>,
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Its folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file or folder could not be read or written.
    #[error("cannot read or write {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The file was written by a newer version.
    #[error("cannot use {}: it has format {format}; this version reads up to {FORMAT}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file has another content.
    #[error("cannot use {}: it does not hold a move", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
    /// The container engine failed, where it stores the moves itself.
    #[error("cannot read or record moves in the container engine: {0}")]
    Engine(String),
}

impl Journal for Folder {
    async fn write(&self, plan: &Move) -> Result<(), JournalError> {
        self.keep(plan)
    }

    async fn forget(&self, plan: &Move) -> Result<(), JournalError> {
        self.remove(plan)
    }

    async fn pending(&self) -> Pending {
        self.kept()
    }
}

impl Folder {
    /// Opens the journal below the folder of an engine's original limits, and creates it if it is
    /// missing.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let folder = StateFolder::open(folder)?;
        let failed = at(&folder.path_of(FOLDER));
        Ok(Self { folder: folder.subfolder(FOLDER).map_err(failed)? })
    }

    /// Records the present state of a move. On return it is on the disk.
    fn keep(&self, plan: &Move) -> Result<(), JournalError> {
        let name = file_of(plan);
        let failed = at(&self.folder.path_of(&name));
        let text = record(plan).map_err(|error| failed(error.into()))?;
        self.folder.replace(&name, text.as_bytes(), Durability::Now).map_err(failed)
    }

    fn remove(&self, plan: &Move) -> Result<(), JournalError> {
        let name = file_of(plan);
        self.folder.remove(&name).map_err(at(&self.folder.path_of(&name)))
    }

    fn kept(&self) -> Pending {
        let mut pending = Pending::default();
        match self.folder.names() {
            Ok(names) => {
                for name in names.iter().filter(|name| name.strip_suffix(".json").is_some()) {
                    match self.read(name) {
                        Ok(plan) => pending.plans.extend(plan),
                        Err(error) => pending.errors.push(error),
                    }
                }
            }
            Err(error) => pending.errors.push(at(self.folder.path())(error)),
        }
        pending
    }

    /// The move in a file; `None` if it was removed meanwhile.
    fn read(&self, name: &str) -> Result<Option<Move>, JournalError> {
        let path = self.folder.path_of(name);
        let Some(bytes) = self.folder.read(name, MAX_LEN).map_err(at(&path))? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        recorded(&text).map(Some).map_err(|why| match why {
            Unreadable::Newer(format) => JournalError::Newer { path, format },
            Unreadable::Malformed(error) => JournalError::Malformed(path, error),
        })
    }
}

/// The name of a move's file.
fn file_of(plan: &Move) -> String {
    format!("{}.json", plan.source)
}

/// Why a record cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// It was written by a newer version, in this format.
    Newer(u32),
    /// It is not the record of a move.
    Malformed(serde_json::Error),
}

/// The record of a move.
pub fn record(plan: &Move) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Written { format: FORMAT, plan })
}

/// The move in a record.
pub fn recorded(record: &str) -> Result<Move, Unreadable> {
    match serde_json::from_str::<Format>(record) {
        Ok(Format { format }) if format > FORMAT => Err(Unreadable::Newer(format)),
        Ok(_) => serde_json::from_str(record).map_err(Unreadable::Malformed),
        Err(error) => Err(Unreadable::Malformed(error)),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> JournalError + use<> {
    let path = path.to_owned();
    move |error| JournalError::Io(path.clone(), error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::migration::execute::tests::plan;

    #[test]
    fn move_is_kept_until_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        let mut plan = plan();
        journal.keep(&plan).unwrap();
        plan.procedure.finished(Ok(()));
        plan.saved = Some(7);
        journal.keep(&plan).unwrap();
        let found = Folder::open(folder.path()).unwrap().kept();
        assert_eq!(found.plans, std::slice::from_ref(&plan));
        assert!(found.errors.is_empty(), "{found:?}");
        journal.remove(&plan).unwrap();
        journal.remove(&plan).unwrap();
        assert_eq!(journal.kept().plans, []);
    }

    #[test]
    fn unreadable_file_is_named_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        journal.keep(&plan()).unwrap();
        for (text, words) in [
            ("{}", "x.json: it does not hold a move"),
            (r#"{"format": 1}"#, "x.json: it does not hold a move"),
            (r#"{"format": 2, "moves": []}"#, "has format 2; this version reads up to 1"),
        ] {
            fs::write(folder.path().join("moves/x.json"), text).unwrap();
            let found = journal.kept();
            assert_eq!(found.plans, [plan()]);
            let [error] = &found.errors[..] else { panic!("{found:?}") };
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
