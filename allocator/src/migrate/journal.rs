//! Moves that are under way, on the disk: a file for each, complete or absent, and as far as it has
//! come before its next step is begun.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Move;

/// The version of the files' format.
const FORMAT: u32 = 1;

/// The folder of one engine's moves. Whoever holds the lock of its original limits may write it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
}

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(flatten)]
    plan: &'a Move,
}

#[derive(Deserialize)]
struct Read {
    format: u32,
    #[serde(flatten)]
    plan: Move,
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
}

impl Journal {
    /// Opens, and makes if need be, the journal below the folder of an engine's original limits.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let folder = folder.join("moves");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self { folder })
    }

    /// Keeps a move as it is now. On return it is on the disk.
    pub fn write(&self, plan: &Move) -> Result<(), JournalError> {
        let path = self.path(plan);
        let unfinished = path.with_extension("part");
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec_pretty(&Written { format: FORMAT, plan })?)?;
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

    /// Forgets a move that is over.
    pub fn forget(&self, plan: &Move) -> Result<(), JournalError> {
        let path = self.path(plan);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::Io(path, error))
            }
            _ => Ok(()),
        }
    }

    /// All moves that are not over.
    pub fn pending(&self) -> Result<Vec<Move>, JournalError> {
        let mut plans = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let path = entry.map_err(at(&self.folder))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                plans.push(read(path)?);
            }
        }
        Ok(plans)
    }

    fn path(&self, plan: &Move) -> PathBuf {
        self.folder.join(format!("{}.json", plan.source))
    }
}

fn read(path: PathBuf) -> Result<Move, JournalError> {
    let bytes = fs::read(&path).map_err(at(&path))?;
    match serde_json::from_slice::<Read>(&bytes) {
        Ok(read) if read.format > FORMAT => Err(JournalError::Newer { path, format: read.format }),
        Ok(read) => Ok(read.plan),
        Err(error) => Err(JournalError::Malformed(path, error)),
    }
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
        let journal = Journal::open(folder.path()).unwrap();
        let mut plan = plan();
        journal.write(&plan).unwrap();
        plan.course.came(Ok(()));
        plan.saved = Some(7);
        journal.write(&plan).unwrap();
        assert_eq!(Journal::open(folder.path()).unwrap().pending().unwrap(), [plan.clone()]);
        journal.forget(&plan).unwrap();
        journal.forget(&plan).unwrap();
        assert_eq!(journal.pending().unwrap(), []);
    }

    #[test]
    fn a_file_of_another_kind_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let file = folder.path().join("moves/x.json");
        fs::write(&file, "{}").unwrap();
        let error = journal.pending().unwrap_err().to_string();
        assert!(error.ends_with("x.json does not hold a move"), "{error}");
        journal.write(&plan()).unwrap();
        let text = fs::read_to_string(folder.path().join("moves/source.json")).unwrap();
        fs::write(&file, text.replacen("\"format\": 1", "\"format\": 2", 1)).unwrap();
        let error = journal.pending().unwrap_err().to_string();
        assert!(error.contains("has format 2; this version reads up to 1"), "{error}");
    }
}
