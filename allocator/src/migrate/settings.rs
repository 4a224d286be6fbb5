use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How jobs are moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// By what.
    pub by: Means,
    /// So many seconds a job has to save a checkpoint, and as many to report from its new node.
    pub within: f64,
    /// How often one job is moved, tries that came to nothing included.
    pub most: u32,
}

/// By what jobs are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// A checkpoint, and a new container that goes on from it: as between machines.
    #[default]
    Restart,
    /// The container's set of CPUs is changed while it runs: a move that costs nothing, which only
    /// nodes of one machine allow.
    Cpuset,
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("migration.within is {0}, but must be a number of seconds from 1 to 86400")]
pub struct SettingError(f64);

impl Default for Settings {
    fn default() -> Self {
        // SpeCon moves a job once for having converged, and once to even out the nodes (R10).
        Self { by: Means::default(), within: 60.0, most: 2 }
    }
}

impl Settings {
    /// Refuses what cannot be used.
    pub fn check(self) -> Result<(), SettingError> {
        let possible = (1.0..=86_400.0).contains(&self.within);
        if possible { Ok(()) } else { Err(SettingError(self.within)) }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restart => "restart",
            Self::Cpuset => "cpuset",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_none_is_refused() {
        assert_eq!(Settings::default().check(), Ok(()));
        for within in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            let error = Settings { within, ..Settings::default() }.check().unwrap_err();
            assert!(error.to_string().starts_with(&format!("migration.within is {within}")));
        }
    }
}
