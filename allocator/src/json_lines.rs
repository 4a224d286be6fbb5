//! Files of one JSON value a line: what a run records.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tracing::warn;

/// A file that lines are added to. A failure to write never ends a run: it is said once, and lines
/// that are lost are counted.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
    lost: u64,
}

impl JsonLines {
    /// Makes the file, or empties it.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::create(path)?, lost: 0 })
    }

    /// Adds a line. Whoever reads the file sees it at once.
    pub fn write(&mut self, value: &impl Serialize) {
        let written = serde_json::to_vec(value).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line)
        });
        if let Err(error) = written {
            self.lost += 1;
            if self.lost == 1 {
                warn!("{} cannot be written, lines are lost: {error}", self.path.display());
            }
        }
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        if self.lost > 0 {
            warn!("{} lacks {} lines that could not be written", self.path.display(), self.lost);
        }
    }
}
