//! The progress in files, for those who come when the process has gone.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use paceline_wire::{Progress, Signals};

/// Kubernetes keeps so many bytes of a termination log.
const LONGEST_LAST_WORDS: usize = 4096;

/// The files that hold a job's progress.
#[derive(Debug)]
pub(crate) struct StatusFiles {
    status: Option<PathBuf>,
    termination: Option<PathBuf>,
}

impl StatusFiles {
    /// Files that need not be there yet.
    pub(crate) fn new(status: Option<PathBuf>, termination: Option<PathBuf>) -> Self {
        Self { status, termination }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.status.is_none() && self.termination.is_none()
    }

    /// Writes the progress. A file that cannot be written is tried again the next time: the job
    /// has other worries than a full disk here.
    pub(crate) fn write(&self, progress: &Progress) {
        if let Some(path) = &self.status {
            drop(replace(path, &json(progress)));
        }
        if let Some(path) = &self.termination {
            drop(last_words(path, progress));
        }
    }
}

/// Puts a whole new file in the place of the old one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&new, path)
}

/// Writes into the file itself: in a pod it is a mount, which cannot be replaced.
fn last_words(path: &Path, progress: &Progress) -> io::Result<()> {
    let mut text = json(progress);
    if text.len() > LONGEST_LAST_WORDS {
        let checkpoint = paceline_wire::Checkpoint { error: None, ..progress.checkpoint.clone() };
        let bare = Progress { signals: Signals::default(), checkpoint, ..progress.clone() };
        text = json(&bare);
    }
    if text.len() > LONGEST_LAST_WORDS {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    fs::write(path, text)
}

fn json(progress: &Progress) -> String {
    serde_json::to_string(progress).map(|json| json + "\n").unwrap_or_default()
}
