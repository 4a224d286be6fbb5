//! Running a job as a child.

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};

use clap::Args;

use super::args::JobArgs;
use super::{Failure, chain};
use crate::source::child;

/// The arguments of `exec`.
#[derive(Clone, Debug, Args)]
pub(super) struct ExecArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command; its exit code is ours.
pub(super) fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let patterns = args.job.patterns()?;
    let job = args.job.start(None)?;
    let ended = child::run(&job, &args.command, &patterns);
    job.end(ended.as_ref().is_ok_and(ExitStatus::success));
    job.close();
    let status = ended.map_err(|error| {
        let program = args.command.first().map(|program| program.to_string_lossy().into_owned());
        // As a shell says that there is no such program.
        let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        Failure { code, message: format!("{}: {}", program.unwrap_or_default(), chain(&error)) }
    })?;
    Ok(ExitCode::from(child::exit_code(status)))
}
