//! Appends events to a file of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::event::{self, Scalar};
use crate::record;

/// The end of the name of every file that Paceline writes, by which its readers leave it out.
pub const OWN_SUFFIX: &str = ".paceline";

/// The folder below one with event files of another program.
const OWN_RUN: &str = "paceline";
/// How many entries of a folder are looked at.
const MAX_ENTRIES: usize = 10_000;
/// The most bytes that wait for a disk that takes none.
const MAX_PENDING: usize = 256 * 1024;
/// How many names are tried for a new file.
const MAX_NAMES: u32 = 100;

/// How many events were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that the file has.
    pub written: u64,
    /// Events that were lost because too many waited for the disk.
    pub dropped: u64,
    /// Attempts to write that failed.
    pub failures: u64,
}

/// Writes events into a folder. Each writer has a new file there, named as TensorBoard expects it. If another
/// program has event files there, it is in the folder `paceline` below.
///
/// Events wait in memory while the disk takes none: some hundred KiB, then new ones are dropped.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    host: String,
    number: u32,
    file: Option<Tail<File>>,
    /// Records that the file does not have yet, and their number.
    pending: Vec<u8>,
    waiting: u64,
    last_step: Option<u64>,
    counts: Counts,
}

impl Writer {
    /// A writer for a folder, which is made when the first event is written. `host` is the machine's
    /// name.
    pub fn new(folder: impl Into<PathBuf>, host: &str) -> Self {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let host: String = host.chars().filter(|c| allowed(*c)).take(64).collect();
        Self {
            folder: folder.into(),
            host: if host.is_empty() { "host".to_owned() } else { host },
            number: 0,
            file: None,
            pending: Vec::new(),
            waiting: 0,
            last_step: None,
            counts: Counts::default(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many events were written so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes an event with these values at once; `wall_time` is in Unix seconds.
    ///
    /// The first event, and every one whose step is smaller than the one before, makes what was written for
    /// this and later steps obsolete: TensorBoard then shows one curve over a restart.
    ///
    /// # Errors
    /// If the file cannot be written. The event is kept, within limits, and the next call tries again.
    pub fn write(&mut self, wall_time: f64, step: u64, scalars: &[Scalar<'_>]) -> io::Result<()> {
        let mut records = Vec::new();
        let goes_back = self.last_step.is_none_or(|last| step < last);
        if goes_back {
            record::append(&mut records, &event::start(wall_time, step));
        }
        record::append(&mut records, &event::scalars(wall_time, step, scalars));
        if self.pending.len() + records.len() > MAX_PENDING {
            self.counts.dropped += 1;
        } else {
            self.pending.append(&mut records);
            self.waiting += 1;
            self.last_step = Some(step);
        }
        self.flush(wall_time)
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// As for [`Writer::write`].
    pub fn flush(&mut self, wall_time: f64) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let outcome = self.try_flush(wall_time);
        match outcome {
            Ok(()) => {
                self.counts.written += self.waiting;
                self.waiting = 0;
                self.pending.clear();
            }
            Err(_) => self.counts.failures += 1,
        }
        outcome
    }

    fn try_flush(&mut self, wall_time: f64) -> io::Result<()> {
        // A file that a user removed during the run is replaced.
        if self.file.as_ref().is_some_and(|tail| is_removed(&tail.file)) {
            self.file = None;
        }
        let tail = if let Some(tail) = &mut self.file {
            tail
        } else {
            let file = self.create(wall_time)?;
            self.file.insert(Tail { file, len: 0 })
        };
        let outcome = if tail.len == 0 {
            let mut all = Vec::new();
            record::append(&mut all, &event::version(wall_time));
            all.extend_from_slice(&self.pending);
            tail.append(&all)
        } else {
            tail.append(&self.pending)
        };
        outcome.map_err(|failure| {
            if failure.is_torn {
                self.file = None;
            }
            failure.error
        })
    }

    /// The folder for a new file: that of the settings, or one below if another program writes events there.
    /// TensorBoard shows only one writer of a folder, and takes our start for that of all.
    fn run(&self) -> PathBuf {
        if has_others(&self.folder) { self.folder.join(OWN_RUN) } else { self.folder.clone() }
    }

    /// A new file, which nothing else has.
    fn create(&mut self, wall_time: f64) -> io::Result<File> {
        let folder = self.run();
        fs::create_dir_all(&folder)?;
        let (host, pid) = (&self.host, std::process::id());
        // Ten digits: the readers' order of files is that of their names.
        let seconds = format!("{wall_time:010.0}");
        for _ in 0..MAX_NAMES {
            let number = self.number;
            self.number = self.number.saturating_add(1);
            let name = format!("events.out.tfevents.{seconds}.{host}.{pid}.{number}{OWN_SUFFIX}");
            let path = folder.join(name);
            match OpenOptions::new().append(true).create_new(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return outcome,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Whether a folder has event files of another program.
fn has_others(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.take(MAX_ENTRIES).flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.contains("tfevents") && !name.ends_with(OWN_SUFFIX)
    })
}

#[cfg(unix)]
fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|file| file.nlink() == 0)
}

/// Windows keeps the name of an open file.
#[cfg(not(unix))]
fn is_removed(_: &File) -> bool {
    false
}

/// A file that ends with a whole record.
#[derive(Debug)]
struct Tail<F> {
    file: F,
    len: u64,
}

/// Why records were not appended.
#[derive(Debug)]
struct Failure {
    error: io::Error,
    /// A part of them is in the file and cannot be removed: nothing after it could be read.
    is_torn: bool,
}

/// A file that can be cut.
trait Cut: Write {
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl Cut for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

impl<F: Cut> Tail<F> {
    /// Appends whole records, or nothing.
    fn append(&mut self, records: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(records).and_then(|()| self.file.flush());
        match written {
            Ok(()) => {
                let added = u64::try_from(records.len()).unwrap_or(u64::MAX);
                self.len = self.len.saturating_add(added);
                Ok(())
            }
            Err(error) => {
                let is_torn = self.file.cut(self.len).is_err();
                Err(Failure { error, is_torn })
            }
        }
    }
}

#[cfg(test)]
mod tests;
