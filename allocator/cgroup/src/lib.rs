//! Control groups of both versions: a container's use, and reading and writing the limit that the
//! kernel enforces. The container engine does not notice a write.

pub mod block_io;
mod instance;
pub mod job_group;
mod knobs;
pub mod mounts;
pub mod own;
pub mod probe;
pub mod small_file;

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use paceline_policy::Share;

use crate::mounts::Folders;

pub use instance::{Found, Instance};
pub use knobs::WeightScale;

/// One container's control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    folders: Folders,
    /// Its path within the hierarchy that holds the CPU limit.
    path: PathBuf,
}

/// A CPU limit as the kernel has it: CPU time for each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// Microseconds of CPU time; `None` means unlimited.
    pub quota: Option<u64>,
    /// Microseconds in a period.
    pub period: u64,
}

/// What a control group has used since it was created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The length of the periods in which the group was throttled, in seconds.
    pub throttled_seconds: f64,
    /// Memory in use, in bytes.
    pub memory: Option<u64>,
}

impl Cgroup {
    /// The control group of process `pid`, found through the host's `/proc` at `proc`.
    pub fn for_process(proc: &Path, pid: u32) -> io::Result<Self> {
        Self::from_text(proc, &groups_of(proc, pid)?)
    }

    /// The control group that the engine made for container `id`, whose first process is `pid`. A
    /// process may move to a group below it, as an init or an inner engine does. The limit stays on the
    /// container's own group, whose name ends with the id, as every engine names it.
    ///
    /// Without such a name, the process is not the container's: it may have got the number of one that
    /// has ended. Its group belongs to a bystander, so that is an error.
    pub fn for_container(proc: &Path, pid: u32, id: &str) -> io::Result<Self> {
        Self::from_text(proc, &groups_of_container(proc, pid, id)?)
    }

    /// The control group in a text such as that of `/proc/PID/cgroup`.
    fn from_text(proc: &Path, groups: &str) -> io::Result<Self> {
        let mountinfo = fs::read_to_string(proc.join("self/mountinfo"))?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, "its cgroup is not mounted here");
        let folders = mounts::folders(groups, &mountinfo).ok_or_else(missing)?;
        let path = mounts::path_of_limit(groups, &folders).unwrap_or_default();
        let found = Self { folders, path };
        found.quota().map(|_| found)
    }

    /// The folder that holds the CPU limit.
    pub fn cpu_folder(&self) -> &Path {
        match &self.folders {
            Folders::V1 { cpu, .. } => cpu,
            Folders::V2(folder) => folder,
        }
    }

    /// 1 or 2.
    pub fn version(&self) -> u8 {
        match self.folders {
            Folders::V1 { .. } => 1,
            Folders::V2(_) => 2,
        }
    }

    /// Whether systemd manages it. With each request about the group, systemd applies all that it keeps of it.
    pub fn is_of_systemd(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "scope")
    }

    /// The limit in force.
    pub fn quota(&self) -> io::Result<Quota> {
        match &self.folders {
            Folders::V1 { cpu, .. } => {
                let quota: i64 = number(&cpu.join("cpu.cfs_quota_us"))?;
                let period = number(&cpu.join("cpu.cfs_period_us"))?;
                Ok(Quota { quota: u64::try_from(quota).ok(), period })
            }
            Folders::V2(folder) => {
                let path = folder.join("cpu.max");
                let text = small_file::read(&path)?;
                let (quota, period) =
                    text.trim().split_once(' ').ok_or_else(|| bad(&path, &text))?;
                Ok(Quota {
                    quota: match quota {
                        "max" => None,
                        number => Some(number.parse().map_err(|_| bad(&path, &text))?),
                    },
                    period: period.parse().map_err(|_| bad(&path, &text))?,
                })
            }
        }
    }

    /// What the group has used.
    pub fn used(&self) -> io::Result<Used> {
        self.used_under(self.quota()?)
    }

    /// The same, for a caller that already knows the limit in force.
    pub fn used_under(&self, quota: Quota) -> io::Result<Used> {
        match &self.folders {
            Folders::V1 { cpu, cpuacct, memory } => Ok(Used {
                cpu_seconds: number::<f64>(&cpuacct.join("cpuacct.usage"))? / 1e9,
                throttled_seconds: Stat::read(cpu.join("cpu.stat"))?.throttled(quota)?,
                memory: memory.as_ref().and_then(|m| number(&m.join("memory.usage_in_bytes")).ok()),
            }),
            Folders::V2(folder) => {
                let stat = Stat::read(folder.join("cpu.stat"))?;
                Ok(Used {
                    cpu_seconds: stat.keyed("usage_usec")? / 1e6,
                    throttled_seconds: stat.throttled(quota)?,
                    memory: number(&folder.join("memory.current")).ok(),
                })
            }
        }
    }
}

impl Quota {
    /// The limit as a share of a node with `cpus` CPUs.
    pub fn share(self, cpus: f64) -> Share {
        match self.quota {
            Some(quota) if cpus > 0.0 => Share::nearest(micros(quota) / micros(self.period) / cpus),
            _ => Share::ALL,
        }
    }

    /// Whether both allow the same CPU time, apart from rounding by an engine or systemd.
    pub fn is_near(self, other: Self) -> bool {
        let cores = |of: Self| of.quota.map(|quota| micros(quota) / micros(of.period));
        match (cores(self), cores(other)) {
            (Some(one), Some(other)) => (one - other).abs() < ROUNDING,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quota {
            Some(quota) => write!(f, "{quota}/{} us", self.period),
            None => f.write_str("no limit"),
        }
    }
}

/// Limits that differ by fewer CPUs than this count as equal.
pub const ROUNDING: f64 = 0.01;

/// A file of "key value" lines, read once for all keys.
struct Stat {
    path: PathBuf,
    text: String,
}

impl Stat {
    fn read(path: PathBuf) -> io::Result<Self> {
        Ok(Self { text: small_file::read(&path)?, path })
    }

    fn keyed(&self, key: &str) -> io::Result<f64> {
        let mut lines = self.text.lines().filter_map(|line| line.split_once(' '));
        let value = lines.find(|(k, _)| *k == key).and_then(|(_, value)| value.trim().parse().ok());
        value.ok_or_else(|| bad(&self.path, &self.text))
    }

    /// Each period in which the group ran out of quota counts in full. Unlike `throttled_time`, this
    /// does not count each CPU separately.
    fn throttled(&self, quota: Quota) -> io::Result<f64> {
        Ok(self.keyed("nr_throttled")? * micros(quota.period) / 1e6)
    }
}

/// The text that names the control groups of a process.
fn groups_of(proc: &Path, pid: u32) -> io::Result<String> {
    fs::read_to_string(proc.join(pid.to_string()).join("cgroup"))
}

/// The text that names the control groups of container `id`, by its process `pid`.
fn groups_of_container(proc: &Path, pid: u32, id: &str) -> io::Result<String> {
    mounts::of_container(&groups_of(proc, pid)?, id).ok_or_else(|| {
        let why = format!("process {pid} is in no control group of the container");
        io::Error::new(io::ErrorKind::NotFound, why)
    })
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53 µs")]
fn micros(us: u64) -> f64 {
    us as f64
}

fn number<T: std::str::FromStr>(path: &Path) -> io::Result<T> {
    let text = small_file::read(path)?;
    text.trim().parse().map_err(|_| bad(path, &text))
}

fn bad(path: &Path, text: &str) -> io::Error {
    let start: String = text.chars().take(60).collect();
    io::Error::new(io::ErrorKind::InvalidData, format!("{} holds {start:?}", path.display()))
}

#[cfg(test)]
mod tests;
