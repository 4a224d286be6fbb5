//! The control group of one job that runs in no container: made before its command starts, found again by
//! the text of `/proc/PID/cgroup`, and removed after its last process.
//!
//! In version 1 the group lies below the group of the process that makes it, so every limit above still
//! holds. In version 2 a group with processes gives no controllers to groups below it: there the group
//! lies below the root, or in a scope that systemd has delegated.

mod make;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::{Cgroup, mounts, small_file};

pub use make::{Made, MakeError, make, make_in_own, own_job};

/// The folder of all groups of jobs.
pub const PARENT: &str = "paceline";
/// The controllers that must be there …
const NEEDED: [&str; 2] = ["cpu", "cpuacct"];
/// … and those that are used where they are.
const USEFUL: [&str; 2] = ["memory", "blkio"];
/// The most groups below a job's that are looked at.
const MAX_GROUPS: usize = 256;
/// The most processes of a job that are listed.
pub const MAX_PROCESSES: usize = 4096;

/// The control group of one job, in every hierarchy that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGroup {
    /// The group that holds the CPU limit.
    group: Cgroup,
    /// Its folders, that of the CPU limit first.
    folders: Vec<PathBuf>,
    /// Its lines in `/proc/PID/cgroup`.
    text: String,
}

impl JobGroup {
    /// The group of job `id` from lines of `/proc/PID/cgroup`. Its name ends with the id.
    pub fn from_text(proc: &Path, id: &str, text: &str) -> io::Result<Self> {
        let missing = |what: &str| io::Error::new(io::ErrorKind::NotFound, what.to_owned());
        let own = mounts::of_container(text, id);
        let own = own.ok_or_else(|| missing("no control group has the job's id"))?;
        let group = Cgroup::from_text(proc, &own)?;
        let mountinfo = fs::read_to_string(proc.join("self/mountinfo"))?;
        let limit = group.cpu_folder().to_owned();
        let mut folders = vec![limit.clone()];
        if group.version() == 1 {
            for controller in NEEDED.into_iter().chain(USEFUL) {
                let folder = mounts::v1_folder(controller, &own, &mountinfo);
                folders.extend(folder.filter(|folder| folder.is_dir()));
            }
        }
        folders.dedup();
        Ok(Self { group, folders, text: own })
    }

    /// The group of process `pid`, if it is that of job `id`.
    pub fn of_process(proc: &Path, pid: u32, id: &str) -> io::Result<Self> {
        Self::from_text(proc, id, &crate::groups_of(proc, pid)?)
    }

    /// The lines that find it again.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The group with the CPU limit.
    pub fn cgroup(&self) -> &Cgroup {
        &self.group
    }

    /// The user who owns the group: only that user and root can put processes into it.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(fs::metadata(self.group.cpu_folder())?.uid())
    }

    /// Puts the calling process into the group.
    pub fn enter(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| fs::write(folder.join("cgroup.procs"), "0"))
    }

    /// The processes in the group and below it: at most [`MAX_PROCESSES`].
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for folder in below(self.group.cpu_folder()) {
            let text = small_file::read(&folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            if found.len() >= MAX_PROCESSES {
                found.truncate(MAX_PROCESSES);
                break;
            }
        }
        found
    }

    /// Whether no process is left in the group.
    pub fn is_empty(&self) -> bool {
        self.processes().is_empty()
    }

    /// Removes the group and those below it; fails while there are processes in it.
    pub fn remove(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| remove(folder))
    }
}

/// Removes one folder of a job's group. The folder of all jobs goes with the last one, unless it was
/// opened to other users.
fn remove(folder: &Path) -> io::Result<()> {
    for group in below(folder).iter().rev() {
        match fs::remove_dir(group) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    if let Some(parent) = folder.parent().filter(|it| it.ends_with(PARENT))
        && fs::metadata(parent).is_ok_and(|it| it.mode() & 0o022 == 0)
    {
        // It fails while another job is in it.
        drop(fs::remove_dir(parent));
    }
    Ok(())
}

/// A group and all below it, each before those below itself.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(next) = found.get(at).filter(|_| found.len() < MAX_GROUPS) {
        let entries = fs::read_dir(next).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        found.extend(folders);
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests;
