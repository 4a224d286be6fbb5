//! Makes the control group of a job.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{JobGroup, NEEDED, PARENT, USEFUL};
use crate::mounts;

/// How often a folder is made again that another job removes with its own group.
const MAX_TRIES: usize = 8;
/// The controllers of version 2 that a job's group is given, where they are there.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "io"];

/// Why no group can be made for a job: the cause, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// No hierarchy with CPU limits can be seen.
    #[error(
        "no control groups with CPU limits are mounted here; mount them, or run it outside of this container"
    )]
    NotMounted,
    /// The process is in a job's group already.
    #[error("it is a part of the job in group {0} already; its CPU counts there")]
    Nested(String),
    /// The user may not make groups in these folders of version 1.
    #[error(
        "cannot make a control group in {0}: permission denied; run it as root, or ask root for \
         `mkdir -p {0} && chmod 1777 {0}`"
    )]
    Denied(String),
    /// The user may not make groups, or not move processes there, in version 2.
    #[error(
        "cannot move into a control group in {}: permission denied; run it as root, or in a session of \
         systemd", .0.display()
    )]
    NotDelegated(PathBuf),
    /// A group above it is limited, and the job's would not be below it.
    #[error(
        "the control group {0} has a CPU limit that the job would leave; run the command by \
         `systemd-run --user --scope`, or remove the limit"
    )]
    Limited(String),
    /// A group with processes gives no controllers to those below it.
    #[error(
        "cannot enable the cpu controller in {}: it has processes of its own; move them into a group \
         below it, or run it outside of this container", .0.display()
    )]
    Busy(PathBuf),
    /// There is no CPU limit in the group.
    #[error(
        "the cpu controller is not enabled in {}; enable it there, or with systemd by `Delegate=cpu` of \
         user@.service", .0.display()
    )]
    NoController(PathBuf),
    /// A system call failed.
    #[error("cannot use {}: {}; check that control groups are mounted writable", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// The group of the job that process `self` is in, if there is one.
pub fn own_job(proc: &Path) -> Option<String> {
    let text = fs::read_to_string(proc.join("self/cgroup")).ok()?;
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.filter_map(job_in).map(str::to_owned).find(|name| !name.is_empty())
}

/// The part of a path after the folder or scope of jobs.
fn job_in(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    let scope = |part: &str| part.starts_with("paceline-") && is_scope(part);
    parts.find(|part| *part == PARENT || scope(part))?;
    parts.next()
}

fn is_scope(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "scope")
}

/// A group that was made and is still empty.
#[derive(Debug)]
#[must_use]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Puts the calling process into the group of job `id`. On failure nothing is left.
    pub fn enter(self, proc: &Path, id: &str) -> Result<JobGroup, MakeError> {
        entered(proc, &self.0, id)
    }

    /// Removes the group.
    pub fn undo(self) {
        undo(&self.0);
    }
}

/// Makes the group `name` for a job; `name` ends with the job's id.
pub fn make(proc: &Path, name: &str) -> Result<Made, MakeError> {
    let (groups, mountinfo) = texts(proc)?;
    if let Some(job) = own_job(proc) {
        return Err(MakeError::Nested(job));
    }
    let folders = if mounts::v1_folder("cpu", &groups, &mountinfo).is_some() {
        in_version_1(&groups, &mountinfo, name)?
    } else {
        vec![in_version_2(&groups, &mountinfo, name)?]
    };
    Ok(Made(folders))
}

/// Makes the group `name` below the calling process's own group, which was delegated and has no other
/// process, and puts the process into it.
pub fn make_in_own(proc: &Path, name: &str, id: &str) -> Result<JobGroup, MakeError> {
    let (groups, mountinfo) = texts(proc)?;
    let own = mounts::unified_folder(&groups, &mountinfo).ok_or(MakeError::NotMounted)?;
    let folder = own.join(name);
    create(&folder)?;
    // Only a group without processes gives its controllers to groups below it.
    fs::write(folder.join("cgroup.procs"), "0")
        .map_err(|error| MakeError::Io(folder.clone(), error))?;
    enable(&own);
    if !folder.join("cpu.max").exists() {
        return Err(MakeError::NoController(own));
    }
    entered(proc, &[folder], id)
}

/// The job's group, with the calling process in all its folders. On failure nothing is left.
fn entered(proc: &Path, folders: &[PathBuf], id: &str) -> Result<JobGroup, MakeError> {
    let mut before = Vec::new();
    let enter = |folder: &PathBuf| {
        fs::write(folder.join("cgroup.procs"), "0").map_err(|error| denied(folder, error))
    };
    let entered = folders.iter().try_for_each(|folder| {
        enter(folder)?;
        before.push(folder.clone());
        Ok(())
    });
    let found = entered.and_then(|()| {
        let text = fs::read_to_string(proc.join("self/cgroup"));
        let group = text.and_then(|text| JobGroup::from_text(proc, id, &text));
        let limit = folders.first().cloned().unwrap_or_default();
        group.map_err(|error| MakeError::Io(limit, error))
    });
    if found.is_err() {
        for folder in &before {
            let above = folder.parent().and_then(Path::parent);
            drop(above.map(|above| fs::write(above.join("cgroup.procs"), "0")));
        }
        undo(folders);
    }
    found
}

fn texts(proc: &Path) -> Result<(String, String), MakeError> {
    let read = |name: &str| {
        let path = proc.join("self").join(name);
        fs::read_to_string(&path).map_err(|error| MakeError::Io(path, error))
    };
    Ok((read("cgroup")?, read("mountinfo")?))
}

fn in_version_1(groups: &str, mountinfo: &str, name: &str) -> Result<Vec<PathBuf>, MakeError> {
    let mut made: Vec<PathBuf> = Vec::new();
    for controller in NEEDED {
        let own = mounts::v1_folder(controller, groups, mountinfo).ok_or(MakeError::NotMounted);
        let folder = own.map(|own| own.join(PARENT).join(name));
        // Both controllers are usually in one hierarchy.
        let make = |folder: PathBuf| {
            if made.contains(&folder) { Ok(folder) } else { create(&folder).map(|()| folder) }
        };
        match folder.and_then(make) {
            Ok(folder) => made.push(folder),
            Err(error) => {
                undo(&made);
                return Err(in_all(error, groups, mountinfo));
            }
        }
    }
    for controller in USEFUL {
        let own = mounts::v1_folder(controller, groups, mountinfo);
        let folder = own.map(|own| own.join(PARENT).join(name));
        made.extend(folder.filter(|folder| create(folder).is_ok()));
    }
    made.dedup();
    Ok(made)
}

/// Removes what was made.
fn undo(folders: &[PathBuf]) {
    for folder in folders {
        // One that this process cannot leave stays until the caller removes it, after the last process.
        drop(super::remove(folder));
    }
}

/// The same error with all folders that the user needs.
fn in_all(error: MakeError, groups: &str, mountinfo: &str) -> MakeError {
    let MakeError::NotDelegated(_) = error else { return error };
    let own =
        NEEDED.iter().filter_map(|controller| mounts::v1_folder(controller, groups, mountinfo));
    let mut parents: Vec<String> = own.map(|own| own.join(PARENT).display().to_string()).collect();
    parents.dedup();
    MakeError::Denied(parents.join(" "))
}

fn in_version_2(groups: &str, mountinfo: &str, name: &str) -> Result<PathBuf, MakeError> {
    let own = mounts::unified_folder(groups, mountinfo).ok_or(MakeError::NotMounted)?;
    let is_group = |at: &&Path| at.join("cgroup.procs").exists();
    let root = own.ancestors().take_while(is_group).last().unwrap_or(&own).to_owned();
    let limited = own.ancestors().take_while(|at| *at != root).find(|at| {
        fs::read_to_string(at.join("cpu.max")).is_ok_and(|limit| !limit.starts_with("max"))
    });
    if let Some(limited) = limited {
        return Err(MakeError::Limited(limited.display().to_string()));
    }
    let parent = root.join(PARENT);
    let folder = parent.join(name);
    create(&folder)?;
    enable(&root);
    enable(&parent);
    if folder.join("cpu.max").exists() {
        return Ok(folder);
    }
    drop(super::remove(&folder));
    // The true root has no type, and gives its controllers although it has processes.
    let is_true_root = !root.join("cgroup.type").exists();
    Err(if is_true_root { MakeError::NoController(root) } else { MakeError::Busy(root) })
}

/// Gives the controllers of a group to those below it, as far as that is possible.
fn enable(group: &Path) {
    let given = group.join("cgroup.subtree_control");
    let has = fs::read_to_string(&given).unwrap_or_default();
    for controller in CONTROLLERS {
        if !has.split_whitespace().any(|it| it == controller) {
            drop(fs::write(&given, format!("+{controller}")));
        }
    }
}

/// Makes a folder of the job, and with it the folder of all jobs.
fn create(folder: &Path) -> Result<(), MakeError> {
    let parent = folder.parent().unwrap_or(folder);
    for tries in 1.. {
        match fs::create_dir(parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(denied(parent, error));
            }
            Ok(()) => weigh(parent),
            Err(_) => {}
        }
        match fs::create_dir(folder) {
            Ok(()) => return Ok(()),
            // The last job has just removed the folder of all jobs.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < MAX_TRIES => {}
            Err(error) => return Err(denied(parent, error)),
        }
    }
    Ok(())
}

/// Gives all jobs together the weight of one busy process on each CPU. With the kernel's weight of one
/// group, they would have that of a single process beside those that are in no group.
fn weigh(parent: &Path) {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for (file, each, most) in [("cpu.shares", 1024, 262_144), ("cpu.weight", 100, 10_000)] {
        let path = parent.join(file);
        if path.exists() {
            // Without it, the jobs run all the same.
            drop(fs::write(path, cpus.saturating_mul(each).min(most).to_string()));
        }
    }
}

fn denied(folder: &Path, error: io::Error) -> MakeError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if error.kind() == PermissionDenied {
        return MakeError::NotDelegated(folder.to_owned());
    }
    let read_only = error.kind() == ReadOnlyFilesystem;
    let error = if read_only { io::Error::other("it is mounted read-only") } else { error };
    MakeError::Io(folder.to_owned(), error)
}
