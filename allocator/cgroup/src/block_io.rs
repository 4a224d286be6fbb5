//! The weight of a container's block I/O, for kernels whose I/O scheduler supports weights.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::mounts;

/// The file that holds one control group's weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoWeight(PathBuf);

/// The file's possible names: schedulers CFQ and BFQ, versions 1 and 2.
const FILES: [&str; 4] = ["blkio.weight", "blkio.bfq.weight", "io.weight", "io.bfq.weight"];
/// The default weight, in the order of [`FILES`].
const DEFAULTS: [u64; 4] = [500, 100, 100, 100];
/// The range that all of them accept.
const ACCEPTED: (u64, u64) = (10, 1000);

impl IoWeight {
    /// The file of container `id` with the process `pid`, found through the host's `/proc` at `proc`.
    /// `group` is the container's folder. `None` if the kernel has no such file, or the process is another
    /// one's by now.
    pub fn for_container(proc: &Path, (pid, id): (u32, &str), group: &Path) -> Option<Self> {
        let cgroup = super::groups_of_container(proc, pid, id).ok()?;
        let mountinfo = fs::read_to_string(proc.join("self/mountinfo")).ok()?;
        let own = mounts::v1_folder("blkio", &cgroup, &mountinfo);
        let folder = own.as_deref().unwrap_or(group);
        FILES.iter().map(|name| folder.join(name)).find(|path| path.exists()).map(Self)
    }

    /// The weight in force: the first line. Lines for single devices may follow it.
    pub fn get(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.0)?;
        let first = text.lines().next().unwrap_or_default();
        let number = first.strip_prefix("default ").unwrap_or(first).trim();
        number.parse().map_err(|_| super::bad(&self.0, &text))
    }

    /// Sets the weight.
    pub fn set(&self, weight: u64) -> io::Result<()> {
        fs::write(&self.0, weight.to_string())
    }

    /// The block I/O weight that corresponds to a CPU weight. `usual` is the default on the CPU
    /// weight's scale.
    pub fn like(&self, weight: u64, usual: u64) -> u64 {
        let name = self.0.file_name().and_then(|name| name.to_str());
        let at = FILES.iter().position(|file| Some(*file) == name);
        let default = at.and_then(|at| DEFAULTS.get(at)).copied().unwrap_or(100);
        let (least, most) = ACCEPTED;
        (weight.saturating_mul(default) / usual.max(1)).clamp(least, most)
    }
}
