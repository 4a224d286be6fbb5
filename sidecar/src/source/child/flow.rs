//! Counters of the output that passes through. The passing threads never wait for the job's lock,
//! which the reading thread holds most of the time during a flood.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::job::Job;
use crate::merger::SourceId;
use crate::say::say;

/// What has passed, and what was lost.
#[derive(Debug, Default)]
pub(super) struct Flow {
    bytes: AtomicU64,
    /// Threads that are blocked writing to our output.
    writing: AtomicUsize,
    /// Pieces that were not forwarded, or forwarded without being read.
    lost: AtomicU64,
    /// Why output is not forwarded or not read, while that is the case.
    failure: Mutex<Option<String>>,
    reported: Mutex<Option<Losses>>,
}

type Losses = (u64, Option<String>);

impl Flow {
    /// Forwards a piece with `write`.
    pub(super) fn forward(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.writing.fetch_add(1, Ordering::Relaxed);
        let written = write();
        self.writing.fetch_sub(1, Ordering::Relaxed);
        written
    }

    /// Counts bytes that have arrived.
    pub(super) fn arrived(&self, bytes: usize) {
        self.bytes.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The number of bytes that have arrived.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a thread is writing.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Relaxed) > 0
    }

    /// Counts lost pieces.
    pub(super) fn lose(&self, pieces: u64) {
        self.lost.fetch_add(pieces, Ordering::Relaxed);
    }

    /// Sets why the output called `name` cannot be written, and prints it.
    pub(super) fn fail(&self, name: &str, error: &io::Error) {
        // A reader that has seen enough, such as `head`, is not a failure to report.
        if error.kind() != ErrorKind::BrokenPipe {
            say(format_args!(
                "cannot write {name}: {error}; the command runs on, free space or redirect its output"
            ));
        }
        self.set_failure(Some(format!("cannot write {name}: {error}")));
    }

    /// Sets why output is not forwarded or not read.
    pub(super) fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Shows the losses in the progress, if they have changed.
    pub(super) fn report(&self, job: &Job, source: SourceId) {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let losses = Some((self.lost.load(Ordering::Relaxed), failure));
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if *reported != losses {
            reported.clone_from(&losses);
            if let Some((lost, failure)) = losses {
                job.describe(source, |known| {
                    known.dropped = lost;
                    known.error = failure;
                });
            }
        }
    }
}
