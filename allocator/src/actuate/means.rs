use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What limits are written by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The engine, which keeps them: a container that is restarted has them again.
    #[default]
    Engine,
    /// The control group's files: microseconds, and the engine learns nothing of it.
    Cgroup,
}

/// What is done where somebody else has changed a limit, or a restart has lost it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrift {
    /// The limit is written again.
    #[default]
    Reassert,
    /// The container is left alone until somebody says `manage`.
    Yield,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Engine => "engine",
            Self::Cgroup => "cgroup",
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
