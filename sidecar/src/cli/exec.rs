//! `exec`: runs a job as a child process.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use clap::Args;

use super::args::JobArgs;
use super::forward::ForwardArgs;
use super::{Failure, chain};
use crate::job::Job;
use crate::say::say;
use crate::source::child;

pub(super) const EXAMPLES: &str = "\
Examples:
  paceline-sidecar exec -- python train.py
  paceline-sidecar exec --tty -- python train.py        bars keep their form and colours
  paceline-sidecar exec --job vae --acceptable 120 --objective 110 -- python train.py
  paceline-sidecar exec --listen 127.0.0.1:0 -- python train.py
  paceline-sidecar exec --status-file last.json -- python train.py
  paceline-sidecar exec --on 'finished,failed=mail -s training me' -- python train.py";

/// The arguments of `exec`.
#[derive(Clone, Debug, Args)]
pub(super) struct ExecArgs {
    /// Run the command in a terminal of its own, so that bars keep their form and colours. Both of
    /// its outputs then go to standard output
    #[arg(long)]
    tty: bool,
    #[command(flatten)]
    job: JobArgs,
    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    // The last, because its heading is that of all arguments that follow.
    #[command(flatten)]
    forward: ForwardArgs,
}

/// The arguments of the hidden command that enters a terminal.
#[derive(Clone, Debug, Args)]
pub(super) struct EnterArgs {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command and returns its exit code.
pub(super) fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    if args.command.first().is_some_and(|program| program.is_empty()) {
        return Err(Failure::usage("invalid COMMAND \"\": expected a program, for example python"));
    }
    let patterns = args.job.patterns()?;
    let plan = args.forward.plan()?;
    let job = args.job.start_for_command()?;
    let flush = match plan.start(&job, None) {
        Ok(flush) => Some(flush),
        Err(failure) => {
            let message = failure.of_machine()?;
            say(format_args!("{message}; the command runs, and nothing is forwarded"));
            None
        }
    };
    let ended = match child::run(&job, &args.command, &patterns, args.tty) {
        Ok(ended) => ended,
        Err(error) => return Err(run_unread(&job, &args.command, &error)),
    };
    job.end(ended.as_ref().is_ok_and(ExitStatus::success));
    job.close();
    if let Some(flush) = flush {
        flush.run(&job);
    }
    let status = ended.map_err(|error| cannot_run(&args.command, &error))?;
    Ok(ExitCode::from(child::exit_code(status)))
}

/// Becomes the command, whose output cannot be read: the job comes first. Returns only if that fails.
fn run_unread(job: &Job, command: &[OsString], error: &io::Error) -> Failure {
    // One that has not started was spoken of.
    if job.address().is_some() {
        say(format_args!(
            "cannot read the command's output: {error}; the command runs without an endpoint"
        ));
    }
    job.close();
    cannot_run(command, &child::become_command(command))
}

/// Becomes the command, in a terminal of its own.
pub(super) fn enter(args: &EnterArgs) -> Failure {
    cannot_run(&args.command, &child::enter(&args.command))
}

/// Becomes the command of `--on`, in a session of its own.
#[cfg(feature = "forward")]
pub(super) fn run_hook(args: &EnterArgs) -> Failure {
    cannot_run(&args.command, &crate::forward::hook::become_command(&args.command))
}

fn cannot_run(command: &[OsString], error: &io::Error) -> Failure {
    let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    // The exit codes of a shell: 127 if the program is missing, 126 if it cannot be run.
    let is_file = command.first().is_some_and(|program| Path::new(program).is_file());
    let (code, advice) = if error.kind() == io::ErrorKind::NotFound && is_file {
        (127, "; check the interpreter that its first line names")
    } else if error.kind() == io::ErrorKind::NotFound {
        (127, "; check its name and the PATH")
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        (126, "; make it executable, or put its interpreter before it, for example python")
    } else {
        (126, "")
    };
    Failure { code, message: format!("cannot run {program}: {}{advice}", chain(error)) }
}
