//! The exit codes of `paceline`.

use std::process::ExitCode;

use paceline_api::usage::BadUsage;

/// A failure while running.
pub const FAILED: u8 = 1;
/// Bad usage, configuration or input.
pub const USAGE: u8 = 2;
/// The engine is not reachable.
pub const NO_ENGINE: u8 = 3;

/// The engine is not reachable.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {engine} at {host}: {reason}")]
pub struct NoEngine {
    /// What it is.
    pub engine: &'static str,
    /// The engine's address.
    pub host: String,
    /// The reason.
    pub reason: String,
}

/// Whether an error comes from the machine, and not from the command line or a file.
pub fn is_of_the_machine(error: &anyhow::Error) -> bool {
    number(error) != USAGE
}

/// Whether no engine answers.
pub fn lacks_engine(error: &anyhow::Error) -> bool {
    number(error) == NO_ENGINE
}

/// The exit code for an error.
pub fn code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(number(error))
}

fn number(error: &anyhow::Error) -> u8 {
    let is = |cause: &(dyn std::error::Error + 'static)| {
        if cause.is::<NoEngine>() {
            Some(NO_ENGINE)
        } else if cause.is::<BadUsage>() || is_schedule_error(cause) {
            Some(USAGE)
        } else {
            None
        }
    };
    error.chain().find_map(is).unwrap_or(FAILED)
}

/// Whether the error is an invalid schedule.
#[cfg(feature = "bench")]
fn is_schedule_error(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<paceline_bench::schedule::ScheduleError>()
}

/// Always false: without the feature `bench` no command reads schedules.
#[cfg(not(feature = "bench"))]
fn is_schedule_error(_cause: &(dyn std::error::Error + 'static)) -> bool {
    false
}
