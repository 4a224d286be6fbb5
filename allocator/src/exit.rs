//! How `paceline` ends: exit codes that scripts rely on.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use crate::bench::schedule::ScheduleError;
use crate::signals::Ending;

/// A failure while running.
pub const FAILED: u8 = 1;
/// Bad usage, configuration or input.
pub const USAGE: u8 = 2;
/// The engine cannot be reached.
pub const NO_ENGINE: u8 = 3;
/// Ended by Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// What the user asked for cannot be done as asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);

impl BadUsage {
    /// The file of a setting cannot be used.
    pub fn file(setting: &str, path: &Path, why: impl Display) -> Self {
        Self(format!("{setting} {}: {why}", path.display()))
    }
}

/// There is no engine to talk to.
#[derive(Debug, thiserror::Error)]
#[error("the Docker engine at {host} is not reachable: {reason}")]
pub struct NoEngine {
    /// Where it was looked for.
    pub host: String,
    /// What came of it.
    pub reason: String,
}

/// The exit code for an error.
pub fn code(error: &anyhow::Error) -> ExitCode {
    let is = |cause: &(dyn std::error::Error + 'static)| {
        if cause.is::<NoEngine>() {
            Some(NO_ENGINE)
        } else if cause.is::<BadUsage>() || cause.is::<ScheduleError>() {
            Some(USAGE)
        } else {
            None
        }
    };
    ExitCode::from(error.chain().find_map(is).unwrap_or(FAILED))
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Interrupted => Self::from(INTERRUPTED),
            Ending::Terminated => Self::SUCCESS,
        }
    }
}
