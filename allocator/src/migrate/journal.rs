//! Moves that are under way, where a crash does not lose them: on one machine a file for each on the
//! disk, complete or absent, and as far as it has come before its next step is begun.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Move;

/// The version of the files' format.
const FORMAT: u32 = 1;

/// Where moves are kept, so that whoever comes after a crash knows of those that are not over.
pub trait Journal: Send + Sync {
    /// Keeps a move as it is now: on return, a crash does not lose it.
    fn write(&self, plan: &Move) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// Forgets a move that is over.
    fn forget(&self, plan: &Move) -> impl Future<Output = Result<(), JournalError>> + Send;

    /// All moves that are not over.
    fn pending(&self) -> impl Future<Output = Pending> + Send;
}

/// The folder of one engine's moves. Whoever holds the lock of its original limits may write it.
#[derive(Debug)]
pub struct Folder {
    folder: PathBuf,
}

/// A move as it is kept, wherever that is.
#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(flatten)]
    plan: &'a Move,
}

/// What of a file is read first: another format may say anything else.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The moves that are not over.
#[derive(Debug, Default)]
pub struct Pending {
    /// Those that can be read.
    pub plans: Vec<Move>,
    /// Why others cannot be.
    pub errors: Vec<JournalError>,
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading or writing failed.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// A file that a newer version has written.
    #[error("{} has format {format}; this version reads up to {FORMAT}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A file that is not ours.
    #[error("{} does not hold a move", .0.display())]
    Malformed(PathBuf, #[source] serde_json::Error),
    /// The engine, where it keeps moves itself.
    #[error("the engine does not keep moves: {0}")]
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
    /// Opens, and makes if need be, the journal below the folder of an engine's original limits.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let folder = folder.join("moves");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self { folder })
    }

    /// Keeps a move as it is now. On return it is on the disk.
    fn keep(&self, plan: &Move) -> Result<(), JournalError> {
        let path = self.path(plan);
        let unfinished = path.with_extension("part");
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(record(plan)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // On a full disk even half a file is in the way.
            drop(fs::remove_file(&unfinished));
            at(&path)(error)
        })
    }

    fn remove(&self, plan: &Move) -> Result<(), JournalError> {
        let path = self.path(plan);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::Io(path, error))
            }
            _ => Ok(()),
        }
    }

    fn kept(&self) -> Pending {
        let mut pending = Pending::default();
        match self.files() {
            Ok(files) => files.into_iter().for_each(|path| match read(path) {
                Ok(plan) => pending.plans.push(plan),
                Err(error) => pending.errors.push(error),
            }),
            Err(error) => pending.errors.push(at(&self.folder)(error)),
        }
        pending
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let is_one = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
        paths.filter(|path| path.as_ref().map_or(true, is_one)).collect()
    }

    fn path(&self, plan: &Move) -> PathBuf {
        self.folder.join(format!("{}.json", plan.source))
    }
}

/// Why a record cannot be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// A newer version has written it, in this format.
    Newer(u32),
    /// It is none.
    Malformed(serde_json::Error),
}

/// The record of a move.
pub(crate) fn record(plan: &Move) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Written { format: FORMAT, plan })
}

/// The move of a record.
pub(crate) fn recorded(record: &str) -> Result<Move, Unreadable> {
    match serde_json::from_str::<Format>(record) {
        Ok(Format { format }) if format > FORMAT => Err(Unreadable::Newer(format)),
        Ok(_) => serde_json::from_str(record).map_err(Unreadable::Malformed),
        Err(error) => Err(Unreadable::Malformed(error)),
    }
}

fn read(path: PathBuf) -> Result<Move, JournalError> {
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    recorded(&text).map_err(|why| match why {
        Unreadable::Newer(format) => JournalError::Newer { path, format },
        Unreadable::Malformed(error) => JournalError::Malformed(path, error),
    })
}

fn at(path: &Path) -> impl Fn(io::Error) -> JournalError {
    let path = path.to_owned();
    move |error| JournalError::Io(path.clone(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::carry::tests::plan;

    #[test]
    fn a_move_is_kept_until_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        let mut plan = plan();
        journal.keep(&plan).unwrap();
        plan.course.came(Ok(()));
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
    fn a_file_that_cannot_be_read_is_an_error_that_names_it_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Folder::open(folder.path()).unwrap();
        journal.keep(&plan()).unwrap();
        for (text, words) in [
            ("{}", "x.json does not hold a move"),
            (r#"{"format": 1}"#, "x.json does not hold a move"),
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
