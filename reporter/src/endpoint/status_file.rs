//! The progress in files, for readers after the process has ended.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use paceline_wire::{Progress, Rank, Signals};

use crate::say::say;

/// The most bytes that Kubernetes keeps of a termination log.
const MAX_TERMINATION_BYTES: usize = 4096;

/// The files with a job's progress.
#[derive(Debug)]
pub(crate) struct StatusFiles {
    status: Option<StatusFile>,
    termination: Option<StatusFile>,
}

/// One of the files.
#[derive(Debug)]
struct StatusFile {
    name: &'static str,
    path: PathBuf,
    /// Whether the last write failed.
    failing: AtomicBool,
}

impl StatusFiles {
    /// The files need not exist yet. All processes of a job on one machine get the same setting, so a further
    /// one writes a status file of its own, and no termination log: a pod has only one.
    pub(crate) fn new(
        status: Option<PathBuf>,
        termination: Option<PathBuf>,
        rank: Option<Rank>,
    ) -> Self {
        let file = |name| move |path| StatusFile { name, path, failing: AtomicBool::new(false) };
        let further = rank.filter(|rank| rank.local.unwrap_or(rank.global) > 0);
        let of_rank = |path: PathBuf| match further {
            Some(rank) => with_suffix(&path, &format!(".rank_{}", rank.global)),
            None => path,
        };
        Self {
            status: status.map(of_rank).map(file("status file")),
            termination: termination.filter(|_| further.is_none()).map(file("termination log")),
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.status.is_none() && self.termination.is_none()
    }

    /// Writes the progress. An error is said once and does not fail the job; the next write tries
    /// again.
    pub(crate) fn write(&self, progress: &Progress) {
        if let Some(file) = &self.status {
            file.note(replace(&file.path, &json(progress)));
        }
        if let Some(file) = &self.termination {
            file.note(write_termination(&file.path, progress));
        }
    }
}

impl StatusFile {
    /// Says a failure, unless the write before has failed as well.
    fn note(&self, written: io::Result<()>) {
        let failed_before = self.failing.swap(written.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (written, failed_before) {
            let (name, path) = (self.name, self.path.display());
            say(format_args!(
                "cannot write {name} {path}: {error}; the job runs on, and each change is tried again"
            ));
        }
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = with_suffix(path, ".new");
    // What another user put there is neither followed nor waited for: a link, or a pipe without a reader.
    drop(fs::remove_file(&new));
    let mut file = File::create_new(&new)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&new, path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Writes the termination log in place: in a pod it is a mount, which cannot be replaced.
fn write_termination(path: &Path, progress: &Progress) -> io::Result<()> {
    let mut text = json(progress);
    if text.len() > MAX_TERMINATION_BYTES {
        let checkpoint = paceline_wire::Checkpoint { error: None, ..progress.checkpoint.clone() };
        let bare = Progress { signals: Signals::default(), checkpoint, ..progress.clone() };
        text = json(&bare);
    }
    if text.len() > MAX_TERMINATION_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // One write, which a pipe takes whole or not at all: the text is never longer than its buffer.
    without_waiting().open(path)?.write_all(text.as_bytes())
}

/// How to open a file that may be a pipe. Without a reader, it is an error in place of a wait, in which
/// nothing else would be answered.
fn without_waiting() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if let Ok(nonblock) = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()) {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nonblock);
    }
    options
}

fn json(progress: &Progress) -> String {
    serde_json::to_string(progress).map(|json| json + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_process_of_a_machine_has_a_status_file_of_its_own() {
        let paths = |global, local| {
            let rank = Some(Rank { global, local, world: None });
            let files =
                StatusFiles::new(Some("/run/s.json".into()), Some("/dev/last".into()), rank);
            (files.status.unwrap().path, files.termination.map(|file| file.path))
        };
        let first = (PathBuf::from("/run/s.json"), Some(PathBuf::from("/dev/last")));
        assert_eq!(paths(0, None), first);
        assert_eq!(paths(8, Some(0)), first, "the first one of another machine");
        assert_eq!(paths(9, Some(1)), ("/run/s.json.rank_9".into(), None));
        assert_eq!(paths(2, None), ("/run/s.json.rank_2".into(), None));
    }
}
