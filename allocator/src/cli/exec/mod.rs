//! `paceline exec`: runs a job outside containers.
//!
//! The command takes the place of this process, or the sidecar does, which runs the command as its child.
//! So exit code, signals, terminal and working directory are those of the command. Before that, this
//! process enters a control group of its own and records the job. What cannot be done is said in one
//! line, and the command runs all the same.

mod args;
mod group;
pub(super) mod launch;
pub(super) mod scope;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use paceline_api::labels::Labels;
use paceline_api::usage::BadUsage;
use paceline_cgroup::job_group::MakeError;
use paceline_runtime::processes;

use super::engine::EngineArgs;
use super::words;
use crate::exit;

pub(super) use args::ExecArgs;

/// The exit code if Paceline fails before the command starts.
const NOT_STARTED: u8 = 125;
/// The hidden command that waits for the end of a job.
pub(super) const REMOVE: &str = "remove-job";

/// The arguments of the hidden command.
#[derive(Clone, Debug, Args)]
pub(super) struct RemoveArgs {
    /// The job's id
    id: String,
}

/// Runs the command in place of this process. Returns only if it cannot be started.
#[expect(
    clippy::print_stderr,
    reason = "this command writes no log, and the job owns standard output"
)]
pub(super) fn run(args: &ExecArgs, engine: &EngineArgs) -> ExitCode {
    match start(args, engine) {
        Ok(launch::NotRun { code, message }) => {
            eprintln!("paceline: {message}");
            ExitCode::from(code)
        }
        Err(error) => {
            eprint!("{}", words(&error, ""));
            let usage = error.is::<BadUsage>();
            ExitCode::from(if usage { exit::USAGE } else { NOT_STARTED })
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "this command writes no log, and the job owns standard output"
)]
fn start(args: &ExecArgs, engine: &EngineArgs) -> anyhow::Result<launch::NotRun> {
    let program = args.command.first().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| {
        BadUsage("invalid COMMAND \"\": expected a program, for example python".to_owned())
    })?;
    let name = args.name();
    let labels = args.labels(&name);
    Labels::parse(&labels).map_err(|error| BadUsage(args.in_own_words(&error)))?;
    let managed = group::enter(&group::Wanted {
        proc: &engine.proc,
        name: &name,
        labels,
        user: engine.user,
        system: args.system,
    });
    let endpoint = match managed {
        Ok(managed) => launch::Endpoint::Own(managed.socket),
        Err(why) => {
            eprintln!("paceline: {} runs unmanaged: {why:#}", program.display());
            // The sidecar of the outer job has its address.
            let nested = matches!(why.downcast_ref(), Some(MakeError::Nested(_)));
            if nested { launch::Endpoint::OfOuterJob } else { launch::Endpoint::Own(None) }
        }
    };
    Ok(launch::become_command(args, &name, &endpoint))
}

/// Waits for the end of a job, and removes its group and its record.
pub(super) fn remove(args: &RemoveArgs, proc: &Path) -> ExitCode {
    let uid = rustix::process::geteuid().as_raw();
    let groups = group::wait_for_start();
    let removed =
        groups.is_ok_and(|it| processes::remove_after_end(proc, uid, &args.id, &it).is_ok());
    // Its outputs are closed, so it says nothing.
    if removed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
