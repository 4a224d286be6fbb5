//! How a program begins and ends.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use paceline_workload::{environment, note, parse};

/// Input of the user that cannot be used: a folder, a file, a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct BadInput(anyhow::Error);

impl BadInput {
    /// Marks an error as one of bad input.
    pub fn new(error: impl Into<anyhow::Error>) -> Self {
        Self(error.into())
    }
}

/// A workload's `main`: completes the environment, parses the command line, and trains. Returns the
/// exit code as [`exit_code`] does.
pub fn run<C: Parser>(workload: &str, train: impl FnOnce(C) -> anyhow::Result<()>) -> ExitCode {
    let run = || {
        environment::complete().context("cannot restart the program")?;
        train(parse().map_err(BadInput::new)?)
    };
    exit_code(workload, run())
}

/// Prints a line with the error, if any, and returns the program's exit code: 0 done, 1 failed, 2 bad
/// usage or input.
pub fn exit_code(workload: &str, result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    note(format_args!("{workload}: {error:#}"));
    ExitCode::from(if error.is::<BadInput>() { 2 } else { 1 })
}
