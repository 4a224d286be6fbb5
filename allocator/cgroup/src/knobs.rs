//! Writing a control group's own files. The container engine does not notice such a write.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Cgroup, Quota, number};
use crate::mounts::Folders;

/// The weight of a group without one: on the container engine's scale, which is that of version 1, and
/// in version 2.
const DEFAULT_SHARES: u64 = 1024;
const DEFAULT_V2: u64 = 100;

impl Cgroup {
    /// Checks whether a limit can be written here and read back. It opens the files for writing, and
    /// writes nothing: a value written back could undo a change that another program makes meanwhile.
    pub fn check_writable(&self) -> io::Result<()> {
        self.quota()?;
        self.weight()?;
        let limit = self.cpu_folder().join(match self.version() {
            1 => "cpu.cfs_quota_us",
            _ => "cpu.max",
        });
        for path in [limit, self.weight_file()] {
            File::options().write(true).open(&path).map_err(|error| named(&path, &error))?;
        }
        Ok(())
    }

    /// Writes a CPU limit. A period that is already right is not written again: the kernel would
    /// check it against the old quota.
    pub fn set_quota(&self, quota: Quota) -> io::Result<()> {
        match &self.folders {
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

    /// The CPU weight on the kernel's own scale, which differs between the versions.
    pub fn weight(&self) -> io::Result<u64> {
        number(&self.weight_file())
    }

    /// Sets the CPU weight, on the same scale.
    pub fn set_weight(&self, weight: u64) -> io::Result<()> {
        fs::write(self.weight_file(), weight.to_string())
    }

    /// Converts a CPU weight from the container engine's scale (2 to 262,144) to the kernel's.
    pub fn weight_of(&self, shares: u64) -> u64 {
        match self.folders {
            Folders::V1 { .. } => shares.clamp(2, 262_144),
            // The defaults of both scales correspond, so that a job keeps its relation to containers
            // without a weight. Version 2 has 1 to 10,000.
            Folders::V2(_) => {
                ((shares * DEFAULT_V2 + DEFAULT_SHARES / 2) / DEFAULT_SHARES).clamp(1, 10_000)
            }
        }
    }

    /// Converts a CPU weight from the kernel's scale to the container engine's.
    pub fn shares_of(&self, weight: u64) -> u64 {
        match self.folders {
            Folders::V1 { .. } => weight.clamp(2, 262_144),
            Folders::V2(_) => {
                ((weight * DEFAULT_SHARES + DEFAULT_V2 / 2) / DEFAULT_V2).clamp(2, 262_144)
            }
        }
    }

    /// The scale of [`Cgroup::weight`].
    pub fn weight_scale(&self) -> WeightScale {
        match self.folders {
            Folders::V1 { .. } => WeightScale::Shares,
            Folders::V2(_) => WeightScale::Weight,
        }
    }

    fn weight_file(&self) -> PathBuf {
        match &self.folders {
            Folders::V1 { cpu, .. } => cpu.join("cpu.shares"),
            Folders::V2(folder) => folder.join("cpu.weight"),
        }
    }
}

/// The scale on which the kernel has CPU weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightScale {
    /// That of version 1, which is the container engines' own: 2 to 262,144.
    #[default]
    Shares,
    /// That of version 2: 1 to 10,000.
    Weight,
}

impl WeightScale {
    /// The weight of a group that was given none.
    pub fn default_weight(self) -> u64 {
        match self {
            Self::Shares => DEFAULT_SHARES,
            Self::Weight => DEFAULT_V2,
        }
    }

    /// What a container engine writes for a weight on its own scale: by the linear conversion that runc
    /// and crun had first, and by the one that replaced it, which keeps the default.
    pub fn by_engines(self, shares: u64) -> [u64; 2] {
        let shares = shares.clamp(2, 262_144);
        match self {
            Self::Shares => [shares; 2],
            Self::Weight => [1 + (shares - 2) * 9_999 / 262_142, curved(shares)],
        }
    }
}

/// The later conversion: a curve through the smallest, the default and the largest weight of both scales.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "exact: from 2 to 262,144, and from 1 to 10,000"
)]
fn curved(shares: u64) -> u64 {
    let log = (shares as f64).log2();
    let exponent = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
    // The bound absorbs the error of the power: the default must not become 101.
    (10_f64.powf(exponent) - 1e-9).ceil().clamp(1.0, 10_000.0) as u64
}

/// The error with its file's name.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
