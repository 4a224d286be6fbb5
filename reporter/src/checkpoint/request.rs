//! A request in the hands of the training loop.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use crate::checkpoint::book::Saved;
use crate::doing::Task;
use crate::job::Job;

/// Why a checkpoint is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Somebody asked for the state as it is now.
    Asked,
    /// The acceptable loss has been reached, or the loss is better than at the checkpoint that is
    /// kept since then. What is kept has a path of its own, so that no later and worse state takes
    /// its place.
    Keep,
}

/// A checkpoint that is wanted: the loop saves, and says how that went.
///
/// Dropping it unanswered counts as a failure, and a panic on the way, too: whoever waits for the
/// checkpoint is told so.
#[derive(Debug)]
#[must_use = "whoever asked waits for `saved` or `failed`"]
pub struct CheckpointRequest<'r> {
    job: &'r Job,
    number: u64,
    reason: Reason,
    /// Where the loop was when it took the request, and therefore what it saves.
    step: u64,
    loss: Option<f64>,
    answered: bool,
}

impl<'r> CheckpointRequest<'r> {
    /// Takes the request that waits, if there is one.
    pub(crate) fn take(job: &'r Job) -> Option<Self> {
        let loss = job.ledger().recent();
        let (number, reason) = job.checkpoints().take(loss, job.direction())?;
        job.set_doing(Task::Checkpointing);
        Some(Self { job, number, reason, step: job.step(), loss, answered: false })
    }

    /// Why it is wanted, and so where it belongs.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// It lies at `path`, complete.
    pub fn saved(mut self, path: impl AsRef<Path>) {
        let path = path.as_ref().to_string_lossy().into_owned();
        let at = self.job.unix_now();
        let Self { step, loss, .. } = self;
        self.answer(Ok(Saved { path, step, loss, at }));
    }

    /// It could not be saved.
    pub fn failed(mut self, error: &(impl Display + ?Sized)) {
        self.answer(Err(error.to_string()));
    }

    /// Saves by `save`, which returns where, and says how it went.
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
        self.job.checkpoints().answer(self.number, self.reason, outcome);
        self.job.set_doing(Task::Training);
        self.job.ring();
    }
}

impl Drop for CheckpointRequest<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err("the training loop let the request go".to_owned()));
        }
    }
}
