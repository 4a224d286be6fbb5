//! Files of one JSON value a line, in which a run records frames and samples.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use tracing::warn;

use crate::regular::open_regular;

/// A file that lines are appended to. A failure to write never ends a run: it is logged once, and
/// lost lines are counted.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
    lost: u64,
}

impl JsonLines {
    /// Creates the file, or empties it. Only a regular file is accepted: a pipe could block the run.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        let file = open_regular(path, OFlags::WRONLY | OFlags::CREATE, mode)?;
        file.set_len(0)?;
        Ok(Self { path: path.to_owned(), file, lost: 0 })
    }

    /// Appends a line. A reader of the file sees it at once.
    pub fn write(&mut self, value: &impl Serialize) {
        let written = serde_json::to_vec(value).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line)
        });
        if let Err(error) = written {
            self.lost += 1;
            if self.lost == 1 {
                warn!("cannot write {}, lines are lost: {error}", self.path.display());
            }
        }
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        if self.lost > 0 {
            warn!("{}: {} lines could not be written", self.path.display(), self.lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn file_is_emptied_and_pipe_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.jsonl");
        std::fs::write(&path, "earlier").unwrap();
        JsonLines::create(&path).unwrap().write(&1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let error = JsonLines::create(&pipe).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
