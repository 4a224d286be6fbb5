//! The replacement in a build without the command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use paceline_api::usage::BadUsage;

/// Not in this build: show the training jobs of this machine in the terminal
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(in crate::cli) struct WatchArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

#[expect(clippy::unused_async, reason = "it replaces an async function")]
pub(in crate::cli) async fn run(_args: WatchArgs) -> anyhow::Result<ExitCode> {
    Err(BadUsage(
        "cannot run `paceline watch`: this build lacks the feature `watch`; build with it by `make \
         build`, or use `paceline-sidecar watch`"
            .to_owned(),
    )
    .into())
}
