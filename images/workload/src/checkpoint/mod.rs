//! Checkpoints: safetensors files that say what they are of.

mod file;
mod folder;

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

pub use self::file::Checkpoint;
pub use self::folder::Checkpoints;

/// What makes two runs the same one: only a run like that may go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The program, such as `vae`.
    pub workload: String,
    /// What the data set is called.
    pub dataset: String,
    /// Of the initial weights, the order of the batches and all that is random in a step.
    pub seed: u64,
    /// How much is learned from in a step.
    pub batch_size: usize,
}

/// What a checkpoint says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// What it is of.
    pub identity: Identity,
    /// The steps that had been made.
    pub step: u64,
    /// The mean of the last losses, where they were finite.
    pub loss: Option<f64>,
}

/// Why there is no checkpoint, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Nobody said where checkpoints belong.
    #[error("this run keeps no checkpoints: it was started without --checkpoints DIR")]
    NoFolder,
    /// The folder or a file in it could not be written.
    #[error("no checkpoint can be written to {path}: {cause}")]
    Write {
        /// Where.
        path: PathBuf,
        /// What happened.
        cause: io::Error,
    },
    /// A file could not be read.
    #[error("{path} cannot be read: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What happened.
        cause: io::Error,
    },
    /// A file is damaged or something else.
    #[error("{path} is no whole checkpoint: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file is a checkpoint of another run.
    #[error("{path} is a checkpoint of another {field}: {is}, not {must}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What differs.
        field: &'static str,
        /// What it is of.
        is: String,
        /// What this run is of.
        must: String,
    },
}

impl Identity {
    /// The first thing in which another one differs, with the other's value and this one's.
    fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        fn differ<T: PartialEq + Display>(
            field: &'static str,
            own: &T,
            other: &T,
        ) -> Option<(&'static str, String, String)> {
            (own != other).then(|| (field, other.to_string(), own.to_string()))
        }
        differ("workload", &self.workload, &other.workload)
            .or_else(|| differ("data set", &self.dataset, &other.dataset))
            .or_else(|| differ("seed", &self.seed, &other.seed))
            .or_else(|| differ("batch size", &self.batch_size, &other.batch_size))
    }

    /// Whether losses of the two can be compared.
    fn is_comparable(&self, other: &Self) -> bool {
        (&self.workload, &self.dataset) == (&other.workload, &other.dataset)
    }
}

#[cfg(test)]
mod tests;
