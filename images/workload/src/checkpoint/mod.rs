//! Checkpoints: safetensors files with metadata of their run.

mod file;
mod folder;

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

pub use self::file::Checkpoint;
pub use self::folder::Checkpoints;

/// The identity of a run: only a run with the same one may resume from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The program, such as `vae`.
    pub workload: String,
    /// The name of the data set.
    pub dataset: String,
    /// The seed of the initial weights, the order of the batches and all randomness in a step.
    pub seed: u64,
    /// The number of items in a step.
    pub batch_size: usize,
}

/// The metadata of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// The identity of its run.
    pub identity: Identity,
    /// The number of steps made.
    pub step: u64,
    /// The mean of the last finite losses.
    pub loss: Option<f64>,
}

/// The reason why a checkpoint is missing or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The run has no folder for checkpoints.
    #[error("this run keeps no checkpoints: it was started without --checkpoints DIR")]
    NoFolder,
    /// The folder or a file in it could not be written.
    #[error("cannot write a checkpoint to {path}: {cause}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file is damaged or not a checkpoint.
    #[error("{path} is not a valid checkpoint: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
    /// A file is a checkpoint of another run.
    #[error("{path} is a checkpoint of another {field}: {is}, not {must}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The field that differs.
        field: &'static str,
        /// The identity of its run.
        is: String,
        /// What this run is of.
        must: String,
    },
}

impl Identity {
    /// The first field in which another one differs, with the other's value and this one's.
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
