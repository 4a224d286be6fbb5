//! The command line.

mod args;
mod exec;
mod healthcheck;
mod install;
mod replay;
mod run;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use args::SourceArgs;

/// Publishes the loss and batch latency of a training job that is not changed for it: read from its
/// output, its TensorBoard or CSV files, or from what it sends.
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
  paceline-sidecar exec -- python train.py        run a job, and read what it prints
  paceline-sidecar --log /logs/train.log          follow a log that another container writes
  paceline-sidecar --tfevents runs/ --csv metrics.csv
  paceline-sidecar --docker trainer               attach to a container of this host
  paceline-sidecar replay train.log               see what would be reported
  curl -s http://127.0.0.1:7223/v1/progress";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command and read what it prints; its output and exit code are passed on unchanged
    Exec(exec::ExecArgs),
    /// Print what would be reported of a log, line by line
    Replay(replay::ReplayArgs),
    /// Ask a sidecar or reporter whether it serves; for exec probes
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Copy this program into a folder; for init containers, since its image has no `cp`
    Install(install::InstallArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let Cli { command, sources } = Cli::parse();
    let result = match command {
        None => run::run(&sources),
        Some(Command::Exec(args)) => exec::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Healthcheck(args)) => healthcheck::run(&args),
        Some(Command::Install(args)) => install::run(&args),
    };
    result.unwrap_or_else(Failure::tell)
}

/// Why a command could not do its work.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// What was asked for cannot be: exit code 2.
    fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// It did not work: exit code 1.
    fn running(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    fn tell(self) -> ExitCode {
        say(format_args!("{}", self.message));
        ExitCode::from(self.code)
    }
}

/// Says something to a person, who may have gone.
fn say(what: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "paceline-sidecar: {what}"));
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        line = format!("{line}: {cause}");
        next = cause.source();
    }
    line
}
