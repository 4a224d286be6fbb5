//! How a program ends.

use std::process::ExitCode;

use paceline_workload::note;

/// Something that the user gave and that does not do: a folder, a file, a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct BadInput(anyhow::Error);

impl BadInput {
    /// Says so of what an error tells.
    pub fn new(error: impl Into<anyhow::Error>) -> Self {
        Self(error.into())
    }
}

/// The exit code of a program, after a line that says what went wrong: 0 done, 1 failed, 2 bad usage
/// or input.
pub fn exit_code(workload: &str, result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    note(format_args!("{workload}: {error:#}"));
    ExitCode::from(if error.is::<BadInput>() { 2 } else { 1 })
}
