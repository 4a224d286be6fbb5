//! The saved state of a sidecar in one file: read positions and progress.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use paceline_reporter::wire::Progress;
use serde::{Deserialize, Serialize};

use crate::{csv, follow, tfevents};

/// The state that a restarted sidecar resumes from. Progress and read positions are written
/// together, so that no loss is counted twice or lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The progress that was reported.
    pub progress: Option<Progress>,
    /// The read position of each file.
    pub files: SavedFiles,
}

/// What a file with a state contains.
#[derive(Debug)]
pub enum Read {
    /// There is no file.
    Missing,
    /// The file is empty, or its end is missing.
    Cut,
    /// A state.
    Whole(Box<Saved>),
}

/// The read positions of all files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedFiles {
    /// Logs.
    pub logs: BTreeMap<PathBuf, follow::Saved>,
    /// CSV files.
    pub csvs: BTreeMap<PathBuf, csv::Seen>,
    /// Folders of event files.
    pub events: BTreeMap<PathBuf, tfevents::folder::Saved>,
}

impl Saved {
    /// Reads the state of the previous sidecar. An error means that the file is something else, or
    /// cannot be read.
    pub fn read(path: &Path) -> io::Result<Read> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Missing),
            Err(error) => return Err(error),
        };
        // After a machine has failed, the end of a file may be missing, or be zeros.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        match serde_json::from_slice(bytes.get(..written).unwrap_or_default()) {
            Ok(saved) => Ok(Read::Whole(Box::new(saved))),
            Err(error) if error.is_eof() => Ok(Read::Cut),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the state for the next sidecar, by rename, so that the file is always whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        File::create(&new)?.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_back_and_a_cut_one_is_told_from_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert!(matches!(Saved::read(&path).unwrap(), Read::Missing));
        let mut saved = Saved::default();
        saved.files.csvs.insert("/metrics.csv".into(), csv::Seen::default());
        saved.write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        let Read::Whole(read) = Saved::read(&path).unwrap() else { panic!("it is whole") };
        assert_eq!(read.files.csvs.len(), 1);
        for length in 0..whole.len() {
            let zeros = vec![0; whole.len() - length];
            for end in [&[][..], &zeros] {
                fs::write(&path, [&whole[..length], end].concat()).unwrap();
                assert!(matches!(Saved::read(&path).unwrap(), Read::Cut), "{length}");
            }
        }
        fs::write(&path, "iter 1: loss 2.5\n").unwrap();
        assert!(Saved::read(&path).is_err());
    }
}
