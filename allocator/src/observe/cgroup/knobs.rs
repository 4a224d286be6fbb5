//! What can be set on a control group by its own files: the engine does not learn of it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Cgroup, Quota, bad, number};
use crate::observe::mounts::Folders;

/// A memory limit as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MemoryLimit {
    /// Bytes of memory; `None` is no limit.
    pub memory: Option<u64>,
    /// Bytes of swap, in version 1 together with memory; `None` is no limit, or nobody counts.
    pub swap: Option<u64>,
}

/// Version 1 has no word for "no limit": it keeps the largest number of pages instead.
const NO_LIMIT: u64 = 1 << 62;

impl Cgroup {
    /// Writes a CPU limit. A period that is right already is not written again: the kernel would
    /// check it against a quota that is about to go.
    pub fn set_quota(&self, quota: Quota) -> io::Result<()> {
        match &self.0 {
            Folders::V1 { cpu, .. } => {
                let path = cpu.join("cpu.cfs_period_us");
                if number(&path).ok() != Some(quota.period) {
                    fs::write(path, quota.period.to_string())?;
                }
                let text = quota.quota.map_or_else(|| "-1".to_owned(), |us| us.to_string());
                fs::write(cpu.join("cpu.cfs_quota_us"), text)
            }
            Folders::V2(folder) => {
                let us = quota.quota.map_or_else(|| "max".to_owned(), |us| us.to_string());
                fs::write(folder.join("cpu.max"), format!("{us} {}", quota.period))
            }
        }
    }

    /// The CPU weight in the kernel's own measure, which differs between the versions.
    pub fn weight(&self) -> io::Result<u64> {
        number(&self.weight_file())
    }

    /// Sets the CPU weight, in the same measure.
    pub fn set_weight(&self, weight: u64) -> io::Result<()> {
        fs::write(self.weight_file(), weight.to_string())
    }

    /// A CPU weight on the engine's scale (2 to 262,144) in the kernel's measure.
    pub fn weight_of(&self, shares: u64) -> u64 {
        match self.0 {
            Folders::V1 { .. } => shares.clamp(2, 262_144),
            // The engine maps both ends of its scale to those of version 2, and what is between
            // in proportion.
            Folders::V2(_) => 1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142,
        }
    }

    fn weight_file(&self) -> PathBuf {
        match &self.0 {
            Folders::V1 { cpu, .. } => cpu.join("cpu.shares"),
            Folders::V2(folder) => folder.join("cpu.weight"),
        }
    }

    /// The memory limit.
    pub fn memory_limit(&self) -> io::Result<MemoryLimit> {
        let (memory, swap) = self.memory_files()?;
        Ok(MemoryLimit { memory: bytes(&memory)?, swap: bytes(&swap).ok().flatten() })
    }

    /// The most memory that the group has used so far, in bytes.
    pub fn memory_peak(&self) -> io::Result<u64> {
        match &self.0 {
            Folders::V1 { .. } => number(&self.memory_folder()?.join("memory.max_usage_in_bytes")),
            Folders::V2(folder) => number(&folder.join("memory.peak")),
        }
    }

    /// Writes a memory limit. Where swap is not counted there is no file for it, and none needed.
    pub fn set_memory_limit(&self, limit: MemoryLimit) -> io::Result<()> {
        let (memory, swap) = self.memory_files()?;
        let none = if self.version() == 1 { "-1" } else { "max" };
        let write = |path: &Path, bytes: Option<u64>| {
            fs::write(path, bytes.map_or_else(|| none.to_owned(), |bytes| bytes.to_string()))
        };
        if !swap.exists() {
            return write(&memory, limit.memory);
        }
        // Version 1 never lets memory alone exceed memory and swap together.
        let now = bytes(&swap)?.unwrap_or(u64::MAX);
        if limit.swap.unwrap_or(u64::MAX) >= now {
            write(&swap, limit.swap)?;
            write(&memory, limit.memory)
        } else {
            write(&memory, limit.memory)?;
            write(&swap, limit.swap)
        }
    }

    fn memory_folder(&self) -> io::Result<&Path> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "memory is not accounted");
        match &self.0 {
            Folders::V1 { memory, .. } => memory.as_deref().ok_or_else(missing),
            Folders::V2(folder) => Ok(folder),
        }
    }

    fn memory_files(&self) -> io::Result<(PathBuf, PathBuf)> {
        let folder = self.memory_folder()?;
        let [memory, swap] = match self.0 {
            Folders::V1 { .. } => ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
            Folders::V2(_) => ["memory.max", "memory.swap.max"],
        };
        Ok((folder.join(memory), folder.join(swap)))
    }
}

fn bytes(path: &Path) -> io::Result<Option<u64>> {
    let text = fs::read_to_string(path)?;
    if text.trim() == "max" {
        return Ok(None);
    }
    let bytes: u64 = text.trim().parse().map_err(|_| bad(path, &text))?;
    Ok((bytes < NO_LIMIT).then_some(bytes))
}
