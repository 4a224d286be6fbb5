use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How jobs are moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MigrationSettings"))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The method.
    pub by: MigrationMethod,
    /// How many seconds a job may take to save a checkpoint, and again to report from its new node.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub within: f64,
    /// How often one job may be moved, failed moves included.
    pub most: u32,
}

/// The method by which jobs are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MigrationMethod {
    /// Start a new container from a checkpoint, as between machines.
    #[default]
    Restart,
    /// Change the container's CPUs while it runs. This costs nothing, and is possible only between
    /// nodes of one machine.
    Cpuset,
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "invalid migration.within {0}: expected a number of seconds from 1 to 86400, for example 60"
)]
pub struct SettingError(f64);

impl Default for Settings {
    fn default() -> Self {
        // SpeCon moves a job once after it has converged, and once to balance the nodes (R10).
        Self { by: MigrationMethod::default(), within: 60.0, most: 2 }
    }
}

impl Settings {
    /// Refuses invalid settings.
    pub fn check(self) -> Result<(), SettingError> {
        let possible = (1.0..=86_400.0).contains(&self.within);
        if possible { Ok(()) } else { Err(SettingError(self.within)) }
    }
}

impl fmt::Display for MigrationMethod {
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
    fn invalid_time_is_refused() {
        assert_eq!(Settings::default().check(), Ok(()));
        for within in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            let error = Settings { within, ..Settings::default() }.check().unwrap_err();
            assert!(error.to_string().starts_with(&format!("invalid migration.within {within}:")));
        }
    }
}
