//! The folder of a workload's checkpoints.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use safetensors::{SafeTensorError, View};
use tempfile::NamedTempFile;

use super::file::{Checkpoint, format};
use super::{CheckpointError, Identity, Metadata};

/// The end of the name of an incomplete file.
const INCOMPLETE: &str = ".tmp";

/// The folder of a workload's checkpoints: the latest one, and the one that is kept once the loss is
/// acceptable.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    workload: &'static str,
}

impl Checkpoints {
    /// Checks that checkpoints can be written to a folder, and removes incomplete files that a killed
    /// run has left there.
    pub fn open(folder: PathBuf, workload: &'static str) -> Result<Self, CheckpointError> {
        let checkpoints = Self { folder, workload };
        let prepare = || {
            for entry in fs::read_dir(&checkpoints.folder)? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                if name.starts_with(&checkpoints.prefix()) && name.ends_with(INCOMPLETE) {
                    fs::remove_file(checkpoints.folder.join(&*name))?;
                }
            }
            checkpoints.incomplete()?.close()
        };
        prepare().map_err(|cause| checkpoints.unwritable(cause))?;
        Ok(checkpoints)
    }

    /// The path of the latest checkpoint, if there is one.
    pub fn latest(&self) -> PathBuf {
        self.folder.join(format!("{}.safetensors", self.workload))
    }

    /// The path of the kept checkpoint, if there is one.
    pub fn acceptable(&self) -> PathBuf {
        self.folder.join(format!("{}-acceptable.safetensors", self.workload))
    }

    /// The latest checkpoint, from which this run can resume.
    pub fn resume(&self, run: &Identity) -> Result<Option<Checkpoint>, CheckpointError> {
        let path = self.latest();
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => Checkpoint::read(&path)?.for_run(run).map(Some),
            Err(cause) => Err(CheckpointError::Read { path, cause }),
        }
    }

    /// Writes the latest checkpoint and returns its path.
    pub fn save<V: View>(
        &self,
        metadata: &Metadata,
        tensors: Vec<(String, V)>,
    ) -> Result<PathBuf, CheckpointError> {
        let path = self.latest();
        self.replace(&path, metadata, tensors)?;
        Ok(path)
    }

    /// Writes the checkpoint to keep, unless there is a better comparable one; returns its path.
    pub fn keep<V: View>(
        &self,
        metadata: &Metadata,
        tensors: Vec<(String, V)>,
    ) -> Result<PathBuf, CheckpointError> {
        let path = self.acceptable();
        // A file that cannot be read does not count as better.
        let kept = Checkpoint::read(&path).ok();
        if !kept.is_some_and(|kept| is_better(kept.metadata(), metadata)) {
            self.replace(&path, metadata, tensors)?;
        }
        Ok(path)
    }

    /// Replaces a file by another one atomically: at any time, one of them is there as a whole.
    fn replace<V: View>(
        &self,
        path: &Path,
        metadata: &Metadata,
        tensors: Vec<(String, V)>,
    ) -> Result<(), CheckpointError> {
        let write = || {
            let file = self.incomplete()?;
            let metadata = format(metadata).into_iter().map(|(key, value)| (key.to_owned(), value));
            let metadata = Some(metadata.collect());
            safetensors::serialize_to_file(tensors, &metadata, file.path()).map_err(io_error)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            // The new name must survive a crash of the machine, too.
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|cause| self.unwritable(cause))
    }

    /// A new temporary file, which is removed unless it is renamed.
    fn incomplete(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(&self.prefix())
            .suffix(INCOMPLETE)
            // The user of a container is seldom the one who reads the file outside.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(&self.folder)
    }

    fn prefix(&self) -> String {
        format!(".{}.safetensors-", self.workload)
    }

    fn unwritable(&self, cause: io::Error) -> CheckpointError {
        CheckpointError::Write { path: self.folder.clone(), cause }
    }
}

/// Whether the kept checkpoint is at least as good. Losses of other data cannot be compared.
fn is_better(kept: &Metadata, new: &Metadata) -> bool {
    kept.identity.is_comparable(&new.identity)
        && kept.loss.is_some_and(|kept| new.loss.is_none_or(|new| kept <= new))
}

fn io_error(error: SafeTensorError) -> io::Error {
    if let SafeTensorError::IoError(error) = error { error } else { io::Error::other(error) }
}
