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
/// The most groups that one call removes, with the steps to them.
const MAX_REMOVED: usize = 65_536;
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
        for folder in below(self.group.cpu_folder()).0 {
            let text = small_file::read(&folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            if found.len() >= MAX_PROCESSES {
                found.truncate(MAX_PROCESSES);
                break;
            }
        }
        found
    }

    /// Whether no process is left in the group. If it has more groups below it than are looked at, it is not
    /// empty.
    pub fn is_empty(&self) -> bool {
        let (groups, is_all) = below(self.group.cpu_folder());
        let has_none = |group: &PathBuf| {
            small_file::read(&group.join("cgroup.procs")).unwrap_or_default().trim().is_empty()
        };
        match self.is_populated() {
            Some(is_populated) => !is_populated,
            None => is_all && groups.iter().all(has_none),
        }
    }

    /// Whether there is a process in the group or below it, as the kernel of version 2 shows it.
    fn is_populated(&self) -> Option<bool> {
        let events = small_file::read(&self.group.cpu_folder().join("cgroup.events")).ok()?;
        let line = events.lines().find_map(|line| line.strip_prefix("populated "))?;
        Some(line.trim() != "0")
    }

    /// Removes the group and those below it; fails while there are processes in it.
    pub fn remove(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| remove(folder))
    }
}

/// Removes one folder of a job's group. The folder of all jobs goes with the last one, unless it was
/// opened to other users.
fn remove(folder: &Path) -> io::Result<()> {
    remove_with_all_below(folder)?;
    if let Some(parent) = folder.parent().filter(|it| it.ends_with(PARENT))
        && fs::metadata(parent).is_ok_and(|it| it.mode() & 0o022 == 0)
    {
        // It fails while another job is in it.
        drop(fs::remove_dir(parent));
    }
    Ok(())
}

/// Removes a group, and first those below it.
fn remove_with_all_below(folder: &Path) -> io::Result<()> {
    let mut at = folder.to_owned();
    for _ in 0..MAX_REMOVED {
        let child = groups_in(&at).next();
        if let Some(child) = child {
            at = child;
            continue;
        }
        match fs::remove_dir(&at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) if at == folder => return Ok(()),
            Ok(()) | Err(_) => drop(at.pop()),
        }
    }
    Err(io::Error::other("it has too many groups below it"))
}

/// The groups directly below one.
fn groups_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}

/// A group and those below it, each before those below itself, and whether these are all.
fn below(folder: &Path) -> (Vec<PathBuf>, bool) {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(next) = found.get(at).filter(|_| found.len() < MAX_GROUPS) {
        let groups: Vec<PathBuf> = groups_in(next).collect();
        found.extend(groups);
        at += 1;
    }
    let is_all = at == found.len();
    (found, is_all)
}

#[cfg(test)]
mod tests;
