//! Writing a run's checkpoints, and resuming from them.

use std::io;
use std::path::PathBuf;

use paceline_reporter::Reason;
use paceline_workload::{CheckpointError, Checkpoints, Identity, Metadata};
use tch::Tensor;

use crate::optimizer::Optimizer;
use crate::state::{self, Stored};

/// Writes a run's checkpoints, if it keeps any.
#[derive(Debug)]
pub(crate) struct Saver {
    pub(crate) folder: Option<Checkpoints>,
    pub(crate) run: Identity,
    pub(crate) model: Vec<(String, Tensor)>,
    /// The step of the latest checkpoint.
    pub(crate) saved: u64,
}

/// The progress of a run.
#[derive(Debug)]
pub(crate) struct Now<'a> {
    pub(crate) step: u64,
    pub(crate) loss: Option<f64>,
    pub(crate) optimizer: &'a dyn Optimizer,
}

impl Saver {
    /// Puts model and optimizer into the state of the latest checkpoint, if there is one, and returns
    /// its path.
    pub(crate) fn resume(
        &mut self,
        optimizer: &mut dyn Optimizer,
    ) -> anyhow::Result<Option<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let Some(checkpoint) = folder.resume(&self.run)? else { return Ok(None) };
        state::restore(&checkpoint, &self.model, optimizer)?;
        self.saved = checkpoint.metadata().step;
        Ok(Some(checkpoint.path().to_owned()))
    }

    /// Whether there is a later step to save.
    pub(crate) fn is_behind(&self, step: u64) -> bool {
        self.folder.is_some() && step > self.saved
    }

    /// Writes the current state as a checkpoint and returns its path.
    pub(crate) fn save(
        &mut self,
        reason: Reason,
        now: &Now<'_>,
    ) -> Result<PathBuf, CheckpointError> {
        let Self { folder, run, model, saved } = self;
        let folder = folder.as_ref().ok_or(CheckpointError::NoFolder)?;
        let Now { step, loss, optimizer } = *now;
        let tensors: Vec<(String, Stored)> = state::stored(model, optimizer).map_err(|error| {
            CheckpointError::Write { path: folder.latest(), cause: io::Error::other(error) }
        })?;
        let metadata = Metadata { identity: run.clone(), step, loss };
        if reason == Reason::Keep {
            return folder.keep(&metadata, tensors);
        }
        let path = folder.save(&metadata, tensors)?;
        *saved = step;
        Ok(path)
    }
}
