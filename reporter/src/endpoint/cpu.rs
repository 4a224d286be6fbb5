//! The CPU that this process may use: the quota of its control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use paceline_wire::Cpu;

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// Reads the current quota, and the number of threads that fits it.
pub(crate) fn read() -> Cpu {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // The standard library considers quota and affinity, and rounds as a thread pool should.
    let threads = thread::available_parallelism().ok();
    Cpu {
        quota: quota(Path::new(ROOT), &groups),
        threads: threads.and_then(|threads| u32::try_from(threads.get()).ok()),
    }
}

/// The smallest quota of a group and its ancestors, in cores; `groups` is the text of
/// `/proc/self/cgroup`.
fn quota(root: &Path, groups: &str) -> Option<f64> {
    let lines = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let found = lines.flat_map(|(controllers, group)| {
        let (mount, read): (_, fn(&Path) -> Option<f64>) = if controllers.is_empty() {
            (root.to_owned(), second_version)
        } else if controllers.split(',').any(|one| one == "cpu") {
            (first_mount(root, controllers), first_version)
        } else {
            return Vec::new();
        };
        // In a container the mount shows its own group as the root, whatever its path is outside.
        let inside = mount.join(group.trim_start_matches('/'));
        let above = inside.ancestors().take_while(|path| path.starts_with(&mount));
        above.filter_map(read).collect()
    });
    found.reduce(f64::min)
}

/// The mount of version 1's CPU controller: named after all its controllers or the CPU's alone.
fn first_mount(root: &Path, controllers: &str) -> PathBuf {
    let joined = root.join(controllers);
    if joined.is_dir() { joined } else { root.join("cpu") }
}

fn first_version(group: &Path) -> Option<f64> {
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<f64>().ok();
    ratio(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn second_version(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_tightest_of_the_groups_above_counts() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "a/cpu.max", "150000 100000\n");
        write(root.path(), "a/b/cpu.max", "max 100000\n");
        assert_eq!(quota(root.path(), "0::/a/b\n"), Some(1.5));
        write(root.path(), "a/b/cpu.max", "50000 100000\n");
        assert_eq!(quota(root.path(), "0::/a/b\n"), Some(0.5));
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cpu/cpu.cfs_quota_us", "25000\n");
        write(root.path(), "cpu/cpu.cfs_period_us", "100000\n");
        let groups = "5:memory:/docker/f00\n4:cpu,cpuacct:/docker/f00\n0::/\n";
        assert_eq!(quota(root.path(), groups), Some(0.25));
    }

    #[test]
    fn without_a_quota_there_is_none() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        write(root.path(), "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(root.path(), "4:cpu,cpuacct:/\n"), None);
        assert_eq!(quota(root.path(), "nonsense"), None);
        assert_eq!(quota(root.path(), ""), None);
    }
}
