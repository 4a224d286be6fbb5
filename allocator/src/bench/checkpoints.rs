//! The folders in which jobs keep their checkpoints while a run lasts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::schedule::Job;

/// The part of a run's folder that holds them.
const FOLDER: &str = "checkpoints";

/// Makes the folder of a job that keeps checkpoints, for whoever it runs as, within `run`.
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
    make().map(Some).with_context(|| format!("cannot make {}", folder.display()))
}

/// Removes them: they are large, and of no use once the run is over.
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
    use crate::bench::outcome::example::job;

    #[test]
    fn a_job_that_keeps_checkpoints_has_a_folder_that_anybody_may_write() {
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
