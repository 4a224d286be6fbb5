//! One file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use safetensors::SafeTensors;

use super::{CheckpointError, Identity, Metadata};

/// Increased when older programs can no longer read the files.
const VERSION: &str = "1";

const FORMAT_VERSION: &str = "format_version";
const WORKLOAD: &str = "workload";
const DATASET: &str = "dataset";
const SEED: &str = "seed";
const BATCH_SIZE: &str = "batch_size";
const STEP: &str = "step";
const LOSS: &str = "loss";

/// A checkpoint in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    path: PathBuf,
    metadata: Metadata,
    bytes: Vec<u8>,
}

impl Checkpoint {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let path = path.to_owned();
        match fs::read(&path) {
            Ok(bytes) => Self::parse(path, bytes),
            Err(cause) => Err(CheckpointError::Read { path, cause }),
        }
    }

    /// Parses bytes that were read from `path` as a checkpoint.
    pub(super) fn parse(path: PathBuf, bytes: Vec<u8>) -> Result<Self, CheckpointError> {
        let header = SafeTensors::read_metadata(&bytes).map_err(|error| error.to_string());
        let metadata = header.and_then(|(_, header)| {
            let entries = header.metadata().iter().flatten();
            parse(&entries.map(|(key, value)| (key.as_str(), value.as_str())).collect())
        });
        match metadata {
            Ok(metadata) => Ok(Self { path, metadata, bytes }),
            Err(what) => Err(CheckpointError::Damaged { path, what }),
        }
    }

    /// The path that it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors in it.
    pub fn tensors(&self) -> Result<SafeTensors<'_>, CheckpointError> {
        SafeTensors::deserialize(&self.bytes).map_err(|error| self.damaged(error))
    }

    /// The error for a checkpoint that cannot be used.
    pub fn damaged(&self, what: impl Display) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.clone(), what: what.to_string() }
    }

    /// Refuses it unless it belongs to this run.
    pub(super) fn for_run(self, run: &Identity) -> Result<Self, CheckpointError> {
        match run.difference(&self.metadata.identity) {
            Some((field, is, must)) => {
                Err(CheckpointError::Foreign { path: self.path, field, is, must })
            }
            None => Ok(self),
        }
    }
}

/// Metadata as a file holds it.
pub(super) fn format(metadata: &Metadata) -> BTreeMap<&'static str, String> {
    let Metadata { identity, step, loss } = metadata;
    let Identity { workload, dataset, seed, batch_size } = identity;
    let known = [
        (FORMAT_VERSION, VERSION.to_owned()),
        (WORKLOAD, workload.clone()),
        (DATASET, dataset.clone()),
        (SEED, seed.to_string()),
        (BATCH_SIZE, batch_size.to_string()),
        (STEP, step.to_string()),
    ];
    known.into_iter().chain(loss.map(|loss| (LOSS, loss.to_string()))).collect()
}

fn parse(entries: &BTreeMap<&str, &str>) -> Result<Metadata, String> {
    let version = text(entries, FORMAT_VERSION)?;
    if version != VERSION {
        return Err(format!("its format_version is {version:?}, expected {VERSION:?}"));
    }
    Ok(Metadata {
        identity: Identity {
            workload: text(entries, WORKLOAD)?.to_owned(),
            dataset: text(entries, DATASET)?.to_owned(),
            seed: number(entries, SEED)?,
            batch_size: number(entries, BATCH_SIZE)?,
        },
        step: number(entries, STEP)?,
        loss: entries.contains_key(LOSS).then(|| number(entries, LOSS)).transpose()?,
    })
}

fn text<'a>(entries: &BTreeMap<&str, &'a str>, key: &str) -> Result<&'a str, String> {
    entries.get(key).copied().ok_or_else(|| format!("its {key} is missing"))
}

fn number<T: FromStr>(entries: &BTreeMap<&str, &str>, key: &str) -> Result<T, String> {
    let text = text(entries, key)?;
    text.parse().map_err(|_| format!("its {key} is {text:?}"))
}
