//! A request that the training loop has taken.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use crate::checkpoint_log::{Reason, Saved};
use crate::doing::Task;
use crate::job::Job;

/// A request for a checkpoint: the loop saves it and reports the outcome.
///
/// Dropping it unanswered, also in a panic, counts as a failure, which the progress shows.
#[derive(Debug)]
#[must_use = "the requester waits for `saved` or `failed`"]
pub struct CheckpointRequest<'r> {
    job: &'r Job,
    number: u64,
    reason: Reason,
    /// The step at which the loop took the request, which is the step that it saves.
    step: u64,
    loss: Option<f64>,
    answered: bool,
}

impl<'r> CheckpointRequest<'r> {
    /// Takes the waiting request, if there is one.
    pub(crate) fn take(job: &'r Job) -> Option<Self> {
        let loss = job.ledger().recent();
        let (number, reason) = job.checkpoints().take(loss, job.direction())?;
        job.set_doing(Task::Checkpointing);
        Some(Self { job, number, reason, step: job.step(), loss, answered: false })
    }

    /// Why it is wanted, which decides where to save it.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Reports that it is complete at `path`.
    pub fn saved(mut self, path: impl AsRef<Path>) {
        let path = path.as_ref().to_string_lossy().into_owned();
        let at = self.job.unix_now();
        let Self { step, loss, .. } = self;
        self.answer(Ok(Saved { path, step, loss, at }));
    }

    /// Reports that it could not be saved.
    pub fn failed(mut self, error: &(impl Display + ?Sized)) {
        self.answer(Err(error.to_string()));
    }

    /// Saves with `save`, which returns the path, and reports the outcome.
    pub fn save<P: AsRef<Path>, E: Error>(
        self,
        save: impl FnOnce(Reason) -> Result<P, E>,
    ) -> Result<P, E> {
        match save(self.reason) {
            Ok(path) => {
                self.saved(&path);
                Ok(path)
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    fn answer(&mut self, outcome: Result<Saved, String>) {
        self.answered = true;
        self.job.checkpoints().answer(self.number, self.reason, outcome, self.job.unix_now());
        self.job.set_doing(Task::Training);
        self.job.ring();
    }
}

impl Drop for CheckpointRequest<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err("the training loop dropped the request without an answer".to_owned()));
        }
    }
}
