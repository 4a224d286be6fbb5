use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How limits are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ActuatorBackend {
    /// To the control group's files where they can be written and read back, else through the engine.
    #[default]
    Auto,
    /// Directly to the control group's files, within microseconds. The engine does not notice.
    Cgroup,
    /// Through the container engine, which keeps them when a container is restarted.
    Engine,
}

/// What to do when a limit was changed outside of Paceline or lost by a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnDrift {
    /// Write the limit again.
    #[default]
    Reassert,
    /// Stop managing the container until `paceline manage` names it.
    Yield,
}

impl fmt::Display for ActuatorBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cgroup => "cgroup",
            Self::Engine => "engine",
        })
    }
}

impl fmt::Display for OnDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reassert => "reassert",
            Self::Yield => "yield",
        })
    }
}
