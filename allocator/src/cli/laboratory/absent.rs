//! Replacements for the commands in a build without them.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use paceline_api::usage::BadUsage;

use super::super::engine::EngineArgs;

/// The arguments of a missing command.
#[derive(Debug, Args)]
pub(in crate::cli) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

// `--help` is a word of the missing commands. For the enum, the attribute would take it from all commands.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Laboratory {
    /// Not in this build: simulate a scenario under several policies
    #[command(disable_help_flag = true)]
    Simulate(Words),
    /// Not in this build: run every policy in each scenario
    #[command(disable_help_flag = true)]
    Scenarios(Words),
    /// Not in this build: fit a scenario to recorded frames
    #[command(disable_help_flag = true)]
    Fit(Words),
    /// Not in this build: run schedules of real containers under policies
    #[command(disable_help_flag = true)]
    Bench(Words),
    /// Not in this build: collect benchmark results in one page
    #[command(disable_help_flag = true)]
    Experiments(Words),
}

impl Laboratory {
    #[expect(clippy::unused_async, reason = "it replaces an async function")]
    pub(in crate::cli) async fn run(self, _engine: &EngineArgs) -> anyhow::Result<ExitCode> {
        let command = match self {
            Self::Simulate(_) => "simulate",
            Self::Scenarios(_) => "scenarios",
            Self::Fit(_) => "fit",
            Self::Bench(_) => "bench",
            Self::Experiments(_) => "experiments",
        };
        Err(BadUsage(format!(
            "cannot run `paceline {command}`: this build lacks the feature `bench`; build with it \
             by `make build` or `cargo build --release --package paceline`"
        ))
        .into())
    }
}
