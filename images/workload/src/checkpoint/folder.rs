//! Where the checkpoints of a workload lie.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use safetensors::{SafeTensorError, View};
use tempfile::NamedTempFile;

use super::file::{Checkpoint, format};
use super::{CheckpointError, Identity, Metadata};

/// How the name of a file that is not complete ends.
const INCOMPLETE: &str = ".tmp";

/// The folder of a workload's checkpoints: the latest, and the one that is kept from the acceptable
/// loss on.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    workload: &'static str,
}

impl Checkpoints {
    /// Makes sure that checkpoints can be written to a folder, and removes what a run that was
    /// killed while it wrote has left there.
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

    /// Where the latest one is, if there is one.
    pub fn latest(&self) -> PathBuf {
        self.folder.join(format!("{}.safetensors", self.workload))
    }

    /// Where the one is that is kept, if there is one.
    pub fn acceptable(&self) -> PathBuf {
        self.folder.join(format!("{}-acceptable.safetensors", self.workload))
    }

    /// The latest one, for this very run to go on from.
    pub fn resume(&self, run: &Identity) -> Result<Option<Checkpoint>, CheckpointError> {
        let path = self.latest();
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => Checkpoint::read(&path)?.of(run).map(Some),
            Err(cause) => Err(CheckpointError::Read { path, cause }),
        }
    }

    /// Writes the latest one; where.
    pub fn save<V: View>(
        &self,
        metadata: &Metadata,
        tensors: Vec<(String, V)>,
    ) -> Result<PathBuf, CheckpointError> {
        let path = self.latest();
        self.replace(&path, metadata, tensors)?;
        Ok(path)
    }

    /// Writes the one to keep, unless a better one with a comparable loss is there; where.
    pub fn keep<V: View>(
        &self,
        metadata: &Metadata,
        tensors: Vec<(String, V)>,
    ) -> Result<PathBuf, CheckpointError> {
        let path = self.acceptable();
        // What cannot be read is no better one.
        let kept = Checkpoint::read(&path).ok();
        if !kept.is_some_and(|kept| is_better(kept.metadata(), metadata)) {
            self.replace(&path, metadata, tensors)?;
        }
        Ok(path)
    }

    /// Puts a file in the place of another in one go: whatever happens meanwhile, one of them is
    /// there as a whole.
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
            // The new name must outlast a crash of the machine, too.
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|cause| self.unwritable(cause))
    }

    /// A new file with a name of its own, which vanishes unless it is given another name.
    fn incomplete(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(&self.prefix())
            .suffix(INCOMPLETE)
            // Whoever trains in a container is seldom who reads the file outside.
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

/// Whether what is kept is at least as good. Losses of other data say nothing.
fn is_better(kept: &Metadata, new: &Metadata) -> bool {
    kept.identity.is_comparable(&new.identity)
        && kept.loss.is_some_and(|kept| new.loss.is_none_or(|new| kept <= new))
}

fn io_error(error: SafeTensorError) -> io::Error {
    if let SafeTensorError::IoError(error) = error { error } else { io::Error::other(error) }
}
