//! The control group of one container: what it uses, and the limit that the kernel enforces.

pub mod block_io;
mod knobs;

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use paceline_policy::Share;

use super::mounts::{self, Folders};
use super::small_file;

pub use knobs::MemoryLimit;

/// One container's control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup(Folders);

/// A CPU limit as the kernel has it: so much CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// Microseconds of CPU time; `None` is no limit.
    pub quota: Option<u64>,
    /// Microseconds in a period.
    pub period: u64,
}

/// What a control group has used since it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// Time in periods in which the group stood at its cap, in seconds.
    pub throttled_seconds: f64,
    /// Memory in use, in bytes.
    pub memory: Option<u64>,
}

impl Cgroup {
    /// The control group of process `pid`, by the `/proc` of the host at `proc`.
    pub fn of(proc: &Path, pid: u32) -> io::Result<Self> {
        let cgroup = fs::read_to_string(proc.join(pid.to_string()).join("cgroup"))?;
        let mountinfo = fs::read_to_string(proc.join("self/mountinfo"))?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, "its cgroup is not mounted here");
        let found = Self(mounts::folders(&cgroup, &mountinfo).ok_or_else(missing)?);
        found.quota().map(|_| found)
    }

    /// The folder that holds the CPU limit.
    pub fn cpu_folder(&self) -> &Path {
        match &self.0 {
            Folders::V1 { cpu, .. } => cpu,
            Folders::V2(folder) => folder,
        }
    }

    /// 1 or 2.
    pub fn version(&self) -> u8 {
        match self.0 {
            Folders::V1 { .. } => 1,
            Folders::V2(_) => 2,
        }
    }

    /// The limit in force.
    pub fn quota(&self) -> io::Result<Quota> {
        match &self.0 {
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

    /// The same, for whoever knows already which limit is in force.
    pub fn used_under(&self, quota: Quota) -> io::Result<Used> {
        match &self.0 {
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

    /// Whether both come to the same CPU time, but for what an engine or systemd rounds.
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

/// Limits that differ by fewer CPUs than this are one limit.
const ROUNDING: f64 = 0.01;

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

    /// Each period in which the group ran out of quota counts whole: that is what "at its cap"
    /// means, and unlike `throttled_time` it does not count each CPU by itself.
    fn throttled(&self, quota: Quota) -> io::Result<f64> {
        Ok(self.keyed("nr_throttled")? * micros(quota.period) / 1e6)
    }
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
