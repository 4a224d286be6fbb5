//! The command line.

mod args;
mod exec;
mod forward;
mod healthcheck;
mod install;
#[cfg(feature = "forward")]
mod otlp;
mod replay;
mod run;
#[cfg(feature = "watch")]
mod show;
mod state_file;
mod values;

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;

#[cfg(feature = "manual")]
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use signal_hook::consts::SIGXFSZ;

use crate::say::say;
use crate::source::child;
use args::SourceArgs;

/// Publishes the loss and batch latency of an unchanged training job. Reads its output, its
/// TensorBoard or CSV files, or the reports that it sends
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sources: SourceArgs,
}

const EXAMPLES: &str = "\
Examples:
  paceline-sidecar exec -- python train.py        run a job and read its output
  paceline-sidecar exec --tty -- python train.py  the same in a terminal of its own
  paceline-sidecar --log /logs/train.log          follow a log of another container
  paceline-sidecar --tfevents runs/ --csv metrics.csv
  paceline-sidecar --docker trainer               attach to a container on this host
  paceline-sidecar exec --on 'stalled,failed=mail -s training me' -- python train.py
  paceline-sidecar replay train.log               show what would be reported
  paceline-sidecar replay --explain train.log     show what is read of each line, and why
  paceline-sidecar watch                          show all jobs of this machine in the terminal
  paceline-sidecar serve                          show them on one page
  curl -s http://127.0.0.1:7223/v1/progress";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command and read its output; output and exit code are passed on unchanged
    #[command(after_help = exec::EXAMPLES)]
    Exec(exec::ExecArgs),
    /// Print what would be reported for a log, line by line, and why
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Show the jobs of this machine in the terminal: loss, progress, time left, CPU
    #[cfg(feature = "watch")]
    #[command(after_help = show::WATCH_EXAMPLES)]
    Watch(paceline_watch::WatchArgs),
    /// Show the jobs of this machine on one page, on loopback
    #[cfg(feature = "watch")]
    #[command(after_help = show::SERVE_EXAMPLES)]
    Serve(paceline_watch::ServeArgs),
    /// Check that a sidecar or reporter is healthy; for exec probes
    #[command(after_help = healthcheck::EXAMPLES)]
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Copy this program into a folder; for init containers, because the image has no `cp`
    #[command(after_help = install::EXAMPLES)]
    Install(install::InstallArgs),
    #[cfg(feature = "manual")]
    Completions(paceline_manual::CompletionsArgs),
    #[cfg(feature = "manual")]
    Man(paceline_manual::ManArgs),
    /// Become a command in a new session with standard output as its terminal; for `exec --tty`
    #[command(name = child::ENTER, hide = true)]
    Enter(exec::EnterArgs),
    /// Become a command in a new session; for `exec --on`
    #[cfg(feature = "forward")]
    #[command(name = crate::forward::hook::RUN, hide = true)]
    RunHook(exec::EnterArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // A file that grows beyond a limit then gives an error, and does not end this process. A command that it
    // starts has the default again.
    drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
    child::heed_children();
    let Cli { command, sources } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match stray_command(&error) {
            Some(failure) => return failure.exit(),
            None => error.exit(),
        },
    };
    let result = match command {
        None => run::run(&sources),
        Some(Command::Exec(args)) => exec::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        #[cfg(feature = "watch")]
        Some(Command::Watch(args)) => show::watch(args),
        #[cfg(feature = "watch")]
        Some(Command::Serve(args)) => show::serve(args),
        Some(Command::Healthcheck(args)) => healthcheck::run(&args),
        Some(Command::Install(args)) => install::run(&args),
        #[cfg(feature = "manual")]
        Some(Command::Completions(args)) => manual(args.run(Cli::command())),
        #[cfg(feature = "manual")]
        Some(Command::Man(args)) => manual(args.run(Cli::command())),
        Some(Command::Enter(args)) => Err(exec::enter(&args)),
        #[cfg(feature = "forward")]
        Some(Command::RunHook(args)) => Err(exec::run_hook(&args)),
    };
    result.unwrap_or_else(Failure::exit)
}

#[cfg(feature = "manual")]
fn manual(written: Result<(), paceline_manual::ManError>) -> Result<ExitCode, Failure> {
    use paceline_manual::ManError;

    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ ManError::Unknown(_)) => Err(Failure::usage(error.to_string())),
        Err(error) => Err(Failure::running(error.to_string())),
    }
}

/// The failure for `exec python train.py`, which lacks the `--` before the command.
fn stray_command(error: &clap::Error) -> Option<Failure> {
    let mut words = env::args_os().skip(1);
    let is_exec = words.next().as_deref() == Some(OsStr::new("exec"));
    if !is_exec || words.any(|word| word == "--") || error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    (!word.starts_with('-')).then(|| {
        Failure::usage(format!(
            "cannot run {word}: expected `--` before the command; put `--` before the command, for \
             example paceline-sidecar exec -- {word}"
        ))
    })
}

/// The exit code of a failure while running.
const RUNNING: u8 = 1;

/// Why a command failed.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// A usage error: exit code 2.
    fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// A runtime error: exit code 1.
    fn running(message: impl Into<String>) -> Self {
        Self { code: RUNNING, message: message.into() }
    }

    /// The message, if the machine and no setting is the cause.
    fn of_machine(self) -> Result<String, Self> {
        if self.code == RUNNING { Ok(self.message) } else { Err(self) }
    }

    fn exit(self) -> ExitCode {
        say(format_args!("{}", self.message));
        ExitCode::from(self.code)
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        line = format!("{line}: {cause}");
        next = cause.source();
    }
    line
}
