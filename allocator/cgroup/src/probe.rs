//! Whether limits can be written to control-group files here: it depends on the mount, on the user, on
//! the controllers that are enabled, and on whether the groups of the machine can be seen at all.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::{Cgroup, Quota};
use crate::mounts::{self, Folders};

/// The limit that is written.
const QUOTA: Quota = Quota { quota: Some(50_000), period: 100_000 };

/// A place where limits can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writable {
    /// The version of the control groups.
    pub version: u8,
    /// The folder of the hierarchy's root, as it is seen here.
    pub root: PathBuf,
}

/// Why no limit can be written.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The files that name the hierarchies cannot be read.
    #[error("cannot read {}", .0.display())]
    Proc(PathBuf, #[source] io::Error),
    /// No hierarchy with CPU limits can be seen.
    #[error("no control groups with CPU limits are mounted here")]
    NotMounted,
    /// No group can be made.
    #[error("cannot make a group in {}", .0.display())]
    Make(PathBuf, #[source] io::Error),
    /// The groups have no CPU limit.
    #[error("the cpu controller is not enabled for the groups in {}", .0.display())]
    NoController(PathBuf),
    /// The limit cannot be written or read.
    #[error("cannot write or read the CPU limit of a group in {}", .0.display())]
    Limit(PathBuf, #[source] io::Error),
    /// The kernel shows another limit.
    #[error("a group in {} has {found} after {QUOTA} was written", .root.display())]
    Differs {
        /// The folder of the hierarchy's root.
        root: PathBuf,
        /// The limit that was read.
        found: Quota,
    },
}

/// Writes a limit to a group of its own and reads it back. No other group is changed, and the group is
/// removed.
pub fn probe(proc: &Path) -> Result<Writable, ProbeError> {
    let read = |name: &str| {
        let path = proc.join("self").join(name);
        fs::read_to_string(&path).map_err(|error| ProbeError::Proc(path, error))
    };
    let (cgroup, mountinfo) = (read("cgroup")?, read("mountinfo")?);
    let own = mounts::folders(&cgroup, &mountinfo).ok_or(ProbeError::NotMounted)?;
    let (version, folder) = match &own {
        Folders::V1 { cpu, .. } => (1, cpu),
        Folders::V2(folder) => (2, folder),
    };
    // Below a group with processes of its own, version 2 has no controllers: only below the root.
    let is_group = |at: &&Path| at.join("cgroup.procs").exists();
    let root = folder.ancestors().take_while(is_group).last().unwrap_or(folder).to_owned();
    let group = Group::make(&root)?;
    let quota_file = if version == 1 { "cpu.cfs_quota_us" } else { "cpu.max" };
    if !group.0.join(quota_file).exists() {
        return Err(ProbeError::NoController(root));
    }
    let folders = match own {
        Folders::V1 { .. } => {
            Folders::V1 { cpu: group.0.clone(), cpuacct: group.0.clone(), memory: None }
        }
        Folders::V2(_) => Folders::V2(group.0.clone()),
    };
    let cgroup = Cgroup { folders, path: PathBuf::new() };
    let found = cgroup.set_quota(QUOTA).and_then(|()| cgroup.quota());
    match found {
        Ok(QUOTA) => Ok(Writable { version, root }),
        Ok(found) => Err(ProbeError::Differs { root, found }),
        Err(error) => Err(ProbeError::Limit(root, error)),
    }
}

/// A group without processes, removed when this is dropped.
struct Group(PathBuf);

impl Group {
    fn make(root: &Path) -> Result<Self, ProbeError> {
        let folder = root.join(format!("paceline-probe-{}", std::process::id()));
        // One of a process that was killed while it had this number.
        drop(fs::remove_dir(&folder));
        fs::create_dir(&folder).map_err(|error| ProbeError::Make(root.to_owned(), error))?;
        Ok(Self(folder))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel's files in it are removed with it.
        drop(fs::remove_dir(&self.0));
    }
}

impl fmt::Display for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} at {}", self.version, self.root.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose hierarchy of version 2 is a folder. It makes no files in new groups.
    fn machine(mounted: bool) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        fs::create_dir_all(folder.path().join("groups/own")).unwrap();
        for group in ["groups", "groups/own"] {
            fs::write(folder.path().join(group).join("cgroup.procs"), "").unwrap();
        }
        let place = folder.path().join("groups");
        let mount = format!("1 1 0:1 / {} rw - cgroup2 cgroup2 rw\n", place.display());
        let mounts = if mounted { mount.as_str() } else { "" };
        fs::write(folder.path().join("proc/self/mountinfo"), mounts).unwrap();
        fs::write(folder.path().join("proc/self/cgroup"), "0::/own\n").unwrap();
        folder
    }

    #[test]
    fn groups_without_the_cpu_controller_are_named() {
        let folder = machine(true);
        let root = folder.path().join("groups");
        let error = probe(&folder.path().join("proc")).unwrap_err();
        assert!(matches!(&error, ProbeError::NoController(at) if *at == root), "{error}");
        // The group is removed.
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
    }

    #[test]
    fn missing_hierarchy_or_proc_is_named() {
        let folder = machine(false);
        let error = probe(&folder.path().join("proc")).unwrap_err();
        assert!(matches!(error, ProbeError::NotMounted), "{error}");
        let error = probe(&folder.path().join("none")).unwrap_err();
        assert!(matches!(error, ProbeError::Proc(..)), "{error}");
    }

    #[test]
    fn hierarchy_where_no_group_can_be_made_is_named() {
        let folder = machine(true);
        let group = format!("groups/paceline-probe-{}", std::process::id());
        // It cannot be removed.
        fs::create_dir_all(folder.path().join(group).join("below")).unwrap();
        let error = probe(&folder.path().join("proc")).unwrap_err();
        assert!(matches!(error, ProbeError::Make(..)), "{error}");
    }

    /// On a machine where root can write to the hierarchy.
    #[test]
    fn limit_is_written_and_read_back_on_this_machine() {
        match probe(Path::new("/proc")) {
            Ok(writable) => assert!(writable.root.join("cgroup.procs").exists(), "{writable}"),
            Err(ProbeError::Limit(..) | ProbeError::Differs { .. }) => panic!("it cannot be used"),
            // Not root, or in a container that sees no groups.
            Err(_) => {}
        }
    }
}
