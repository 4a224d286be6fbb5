//! The command.

use std::process::ExitCode;

use clap::Args;
use paceline_api::usage::{BadUsage, INTERRUPTED};
use paceline_watch::{Ending, Error};

/// Show the training jobs of this machine in the terminal, without an allocator
///
/// Reads the endpoints of jobs that `paceline-sidecar` or the reporter serves: loss, progress, time left,
/// targets, CPU. `paceline top` shows what a running allocator does.
// The arguments below have a group of this name.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = "Examples:
  paceline watch                            all jobs of this machine
  paceline watch 7230                       the job on port 7230
  paceline watch http://127.0.0.1:7223/     by what the job printed at its start
  paceline watch --once                     as plain text; also in a pipe
  paceline watch --json | jq '.jobs[].progress.eval.value'

Keys: up and down choose a job, enter opens it, esc goes back, s changes between steps and time,
q quits.")]
pub(in crate::cli) struct WatchArgs {
    #[command(flatten)]
    watch: paceline_watch::WatchArgs,
}

pub(in crate::cli) async fn run(args: WatchArgs) -> anyhow::Result<ExitCode> {
    match paceline_watch::watch(args.watch).await {
        Ok(Ending::Interrupted) => Ok(ExitCode::from(INTERRUPTED)),
        Ok(Ending::Done) => Ok(ExitCode::SUCCESS),
        Err(Error::Usage(message)) => Err(BadUsage(message).into()),
        Err(error @ Error::Running(_)) => Err(error.into()),
    }
}
