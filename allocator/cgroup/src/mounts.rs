//! Where the control group of a process lies in the file system.
//!
//! The engine's name for a container's cgroup depends on its driver (cgroupfs or systemd) and
//! version. The kernel's does not: `/proc/PID/cgroup` names the group in each hierarchy, and
//! `/proc/self/mountinfo` names the folder where each hierarchy is mounted.

use std::path::{Path, PathBuf};

/// A mounted hierarchy: its controllers and its folder.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// `None` for the unified hierarchy of version 2.
    controllers: Option<Vec<String>>,
    /// The path within the hierarchy that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// The folders of one process's control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folders {
    /// Version 1: a folder for each controller.
    V1 {
        /// Holds `cpu.cfs_quota_us` and `cpu.stat`.
        cpu: PathBuf,
        /// Holds `cpuacct.usage`.
        cpuacct: PathBuf,
        /// Holds `memory.usage_in_bytes`.
        memory: Option<PathBuf>,
    },
    /// Version 2: one folder for all.
    V2(PathBuf),
}

/// Finds the folders from the text of `/proc/PID/cgroup` and of `/proc/self/mountinfo`.
pub fn folders(cgroup: &str, mountinfo: &str) -> Option<Folders> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    let v1 = |controller: &str| v1(controller, cgroup, &mounts);
    // A machine may mount both versions: take the one that has the cpu controller.
    if let (Some(cpu), Some(cpuacct)) = (v1("cpu"), v1("cpuacct")) {
        return Some(Folders::V1 { cpu, cpuacct, memory: v1("memory") });
    }
    unified(cgroup, &mounts).map(Folders::V2)
}

/// The text of `/proc/PID/cgroup` with each path cut after the group of container `id`; `None` if no
/// path has such a group. A path without it gets the path of the others: the process has left its
/// container's group in that hierarchy.
pub fn of_container(cgroup: &str, id: &str) -> Option<String> {
    let own = |path: &str| -> Option<String> {
        let parts: Vec<&str> = path.split('/').collect();
        let last = parts.iter().position(|part| is_of(part, id))?;
        Some(parts.iter().take(last + 1).copied().collect::<Vec<_>>().join("/"))
    };
    let common = cgroup.lines().filter_map(group).find_map(|(_, path)| own(path))?;
    let line = |(of, path): (&str, &str)| {
        let path = own(path).unwrap_or_else(|| common.clone());
        format!("0:{of}:{path}\n")
    };
    Some(cgroup.lines().filter_map(group).map(line).collect())
}

/// Whether a group's name is one that engines give to container `id`: the id, or a word and the id as
/// the name of a systemd scope.
fn is_of(name: &str, id: &str) -> bool {
    let plain = name.strip_suffix(".scope").unwrap_or(name);
    !id.is_empty()
        && plain.strip_suffix(id).is_some_and(|word| word.is_empty() || word.ends_with('-'))
}

/// The path in the hierarchy that holds the CPU limit, from the same text as the folders.
pub fn path_of_limit(cgroup: &str, folders: &Folders) -> Option<PathBuf> {
    let holds = |of: &str| match folders {
        Folders::V1 { .. } => of.split(',').any(|controller| controller == "cpu"),
        Folders::V2(_) => of.is_empty(),
    };
    cgroup.lines().filter_map(group).find(|(of, _)| holds(of)).map(|(_, path)| path.into())
}

/// Finds the folder in the unified hierarchy of version 2.
pub fn unified_folder(cgroup: &str, mountinfo: &str) -> Option<PathBuf> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    unified(cgroup, &mounts)
}

fn unified(cgroup: &str, mounts: &[Mount]) -> Option<PathBuf> {
    let (_, path) = cgroup.lines().filter_map(group).find(|(of, _)| of.is_empty())?;
    let mut unified = mounts.iter().filter(|mount| mount.controllers.is_none());
    unified.find_map(|mount| mount.place(path))
}

/// Finds the folder of one version-1 controller; `None` if it is missing or of version 2.
pub fn v1_folder(controller: &str, cgroup: &str, mountinfo: &str) -> Option<PathBuf> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    v1(controller, cgroup, &mounts)
}

fn v1(controller: &str, cgroup: &str, mounts: &[Mount]) -> Option<PathBuf> {
    let mut groups = cgroup.lines().filter_map(group);
    let path = groups.find(|(of, _)| of.split(',').any(|c| c == controller))?.1;
    let holds = |mount: &&Mount| {
        mount.controllers.as_ref().is_some_and(|all| all.iter().any(|c| c == controller))
    };
    mounts.iter().filter(holds).find_map(|mount| mount.place(path))
}

/// One line of `/proc/PID/cgroup`: controllers and path.
fn group(line: &str) -> Option<(&str, &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    Some((fields.next()?, fields.next()?))
}

/// One line of mountinfo, if it is a cgroup hierarchy.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (unescape(before.next()?), unescape(before.next()?));
    let mut after = after.split(' ');
    let controllers = match after.next()? {
        "cgroup" => Some(after.nth(1)?.split(',').map(str::to_owned).collect()),
        "cgroup2" => None,
        _ => return None,
    };
    Some(Mount { controllers, root, point })
}

impl Mount {
    /// The folder of a path in the hierarchy, if this mount shows it.
    fn place(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        // A path with `..` belongs to another cgroup namespace: it cannot be seen from here.
        let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        plain.then(|| self.point.join(below))
    }
}

/// The kernel writes a space, tab, newline and backslash of a path as `\` and three octal digits.
fn unescape(path: &str) -> PathBuf {
    let plain = path
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\");
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V1_MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
22 1 254:0 / / rw - ext4 /dev/vda rw";

    fn v1(path: &str) -> Folders {
        let cpu = PathBuf::from(format!("/sys/fs/cgroup/cpu,cpuacct{path}"));
        let memory = PathBuf::from(format!("/sys/fs/cgroup/memory{path}"));
        Folders::V1 { cpuacct: cpu.clone(), cpu, memory: Some(memory) }
    }

    #[test]
    fn version_1_is_found_with_either_driver() {
        for path in ["/docker/4f2a", "/system.slice/docker-4f2a.scope"] {
            let cgroup = format!("4:memory:{path}\n3:cpu,cpuacct:{path}\n0::{path}\n");
            assert_eq!(folders(&cgroup, V1_MOUNTS), Some(v1(path)));
        }
    }

    #[test]
    fn version_2_alone_is_found() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let found = folders("0::/system.slice/docker-4f2a.scope\n", mounts);
        let place = PathBuf::from("/sys/fs/cgroup/system.slice/docker-4f2a.scope");
        assert_eq!(found, Some(Folders::V2(place)));
    }

    #[test]
    fn group_of_a_container_is_found_above_its_process() {
        for (path, own) in [
            ("/docker/4f2a/init", "/docker/4f2a"),
            ("/docker/4f2a/docker/77aa", "/docker/4f2a"),
            ("/system.slice/docker-4f2a.scope/a/b", "/system.slice/docker-4f2a.scope"),
            ("/docker/4f2a", "/docker/4f2a"),
        ] {
            let text = of_container(&format!("3:cpu,cpuacct:{path}\n0::{path}\n"), "4f2a");
            assert_eq!(text.unwrap(), format!("0:cpu,cpuacct:{own}\n0::{own}\n"), "{path}");
        }
        for path in ["/docker/4f2abc", "/user.slice", "/docker/x4f2a", "/"] {
            assert_eq!(of_container(&format!("0::{path}\n"), "4f2a"), None, "{path}");
        }
    }

    #[test]
    fn process_that_left_one_hierarchy_is_found_by_another() {
        let text = of_container("4:memory:/docker/4f2a\n3:cpu:/elsewhere\n", "4f2a").unwrap();
        assert_eq!(text, "0:memory:/docker/4f2a\n0:cpu:/docker/4f2a\n");
    }

    #[test]
    fn group_outside_of_the_mount_is_not_found() {
        let mounts = "30 24 0:26 /docker/me /sys/fs/cgroup ro - cgroup2 cgroup2 rw";
        assert_eq!(folders("0::/docker/other\n", mounts), None);
        assert_eq!(folders("0::/../other\n", &mounts.replace("/docker/me", "/")), None);
    }

    #[test]
    fn escaped_mount_point_is_read() {
        let mounts = "30 24 0:26 / /mnt/c\\040g rw - cgroup2 cgroup2 rw";
        assert_eq!(folders("0::/a\n", mounts), Some(Folders::V2(PathBuf::from("/mnt/c g/a"))));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(cgroup in "[ -~\n]*", mounts in "[ -~\n]*") {
            drop(folders(&cgroup, &mounts));
            drop(of_container(&cgroup, &mounts));
        }
    }
}
