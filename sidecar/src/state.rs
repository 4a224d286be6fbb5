//! What outlives a sidecar: how far it has read and what it had come to, in one file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use paceline_reporter::wire::Progress;
use serde::{Deserialize, Serialize};

use crate::{csv, follow, tfevents};

/// All that a successor needs, written as a whole: what was reported and what was read belong
/// together, so that nothing is counted twice and nothing is left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// What was reported.
    pub progress: Option<Progress>,
    /// What was read.
    pub files: SavedFiles,
}

/// How far files were read.
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
    /// What a predecessor left; nothing if there is no file.
    pub fn read(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(Into::into),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Leaves it for a successor.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        File::create(&new)?.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&new, path)
    }
}
