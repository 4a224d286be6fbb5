//! Orders as people read them.

use std::fmt;

use paceline_wire::Targets;

use super::order::{Command, Who};
use crate::figures::exact;

impl Command {
    /// The job or container that the order names.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Manage { name }
            | Self::Release { name }
            | Self::Pin { name, .. }
            | Self::Set { name, .. }
            | Self::Guard { name, .. } => Some(name),
            Self::LogLevel { .. } => None,
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manage { name } => write!(f, "manage {name}"),
            Self::Release { name } => write!(f, "release {name}"),
            Self::Pin { name, share } => write!(f, "pin {name} at {share}"),
            Self::Set { name, targets } => {
                let Targets { acceptable, objective, batch_latency } = targets;
                write!(f, "set {name}")?;
                for (what, value) in [
                    ("acceptable", acceptable),
                    ("objective", objective),
                    ("batch latency", batch_latency),
                ] {
                    value.map_or(Ok(()), |value| write!(f, " {what} {}", exact(value)))?;
                }
                Ok(())
            }
            Self::Guard { name, guard, on } => {
                write!(f, "switch the {guard} guard of {name} {}", if *on { "on" } else { "off" })
            }
            Self::LogLevel { filter } => write!(f, "log by the filter {filter}"),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {}", self.uid)?;
        self.pid.map_or(Ok(()), |pid| write!(f, " (process {pid})"))
    }
}
