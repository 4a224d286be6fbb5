//! The file of `--state`, which a restarted sidecar resumes from.

use std::path::Path;
use std::time::Duration;

use crate::clock::Clock;
use crate::job::Job;
use crate::say::say;
use crate::source::docker::Shared;
use crate::source::files::Files;
use crate::state::{Saved, SeenSoFar};

/// The least time between two tries to write a state, where the first has failed.
const RETRY: Duration = Duration::from_secs(1);

/// Writes the state of a sidecar when its progress has changed.
#[derive(Debug)]
pub(super) struct StateFile<'a> {
    path: &'a Path,
    clock: Clock,
    /// The counts of losses and batches that were written last.
    written: Option<(u64, u64)>,
    /// When the last write has failed.
    failed_at: Option<Duration>,
}

impl<'a> StateFile<'a> {
    /// The file at this path.
    pub(super) fn new(path: &'a Path) -> Self {
        Self { path, clock: Clock::start(), written: None, failed_at: None }
    }

    /// Writes what has changed. A failed write, for example on a full disk, is tried again later: its own
    /// changes in the folder wake the reader of a log there.
    pub(super) fn save(&mut self, job: &Job, files: &Files, containers: &[(String, Shared)]) {
        let waits = |at: Duration| self.clock.elapsed().saturating_sub(at) < RETRY;
        if !self.failed_at.is_some_and(waits) {
            self.save_last(job, files, containers);
        }
    }

    /// The same at the end, without waiting.
    pub(super) fn save_last(&mut self, job: &Job, files: &Files, containers: &[(String, Shared)]) {
        // No container's output is read meanwhile, so that progress and positions fit each other.
        let seen: Vec<_> = containers.iter().map(|(name, seen)| (name, seen.lock())).collect();
        // Without progress, as under `PACELINE_DISABLED`, what an earlier run has counted stays.
        let Some(progress) = job.progress() else { return };
        let counts = (progress.eval.count, progress.batch_latency.count);
        if self.written == Some(counts) {
            return;
        }
        let containers =
            seen.iter().map(|(name, seen)| (String::clone(name), SeenSoFar::clone(seen))).collect();
        let saved = Saved { progress: Some(progress), files: files.saved(), containers };
        let outcome = saved.write(self.path);
        if let Err(error) = &outcome
            && self.failed_at.is_none()
        {
            say(format_args!("cannot write --state {}: {error}; retrying", self.path.display()));
        }
        self.failed_at = outcome.is_err().then(|| self.clock.elapsed());
        self.written = outcome.is_ok().then_some(counts);
    }
}
