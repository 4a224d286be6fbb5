//! The folders in which jobs keep their checkpoints during a run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::schedule::Job;

/// Their parent, in the run's folder.
const FOLDER: &str = "checkpoints";

/// Creates the folder of a job that keeps checkpoints, inside `run`. Any user may write to it, since the
/// job may run as any user.
pub(crate) fn make(run: &Path, job: &Job) -> anyhow::Result<Option<PathBuf>> {
    if job.checkpoint.is_none() {
        return Ok(None);
    }
    let folder = run.join(FOLDER).join(&job.name);
    let make = || {
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
        folder.canonicalize()
    };
    make().map(Some).with_context(|| format!("cannot create {}", folder.display()))
}

/// Removes them: they are large and useless once the run is over.
pub(crate) fn clear(run: &Path) -> anyhow::Result<()> {
    let folder = run.join(FOLDER);
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::example::job;

    #[test]
    fn checkpoint_folder_is_writable_by_any_user_until_cleared() {
        let run = tempfile::tempdir().unwrap();
        let mut job = job("a", 0.0);
        assert_eq!(make(run.path(), &job).unwrap(), None);
        job.checkpoint = Some("/checkpoints".to_owned());
        let folder = make(run.path(), &job).unwrap().unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o777);
        fs::write(folder.join("a.safetensors"), "x").unwrap();
        clear(run.path()).unwrap();
        clear(run.path()).unwrap();
        assert!(!folder.exists());
    }
}
