//! The command line.

mod check;
mod engine;
mod own_container;
mod policies;
mod policy_args;
mod replay;
mod restore;
mod run;
mod state;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::bench::{self, BenchArgs};
use crate::exit;
use engine::EngineArgs;

/// Move CPU between the training jobs that share a machine
#[derive(Debug, Parser)]
#[command(name = "paceline", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    engine: EngineArgs,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  paceline run --policy flowcon            manage every opted-in container of this machine
  paceline run --policy flowcon --dry-run  say what would be done, write nothing
  paceline check vae                       what the allocator sees of container vae
  paceline restore                         put limits back after a crash
  paceline policies                        what there is to choose from
  paceline replay --policy tradl frames.jsonl
  paceline bench examples/schedules/demo.toml

A container opts in by the label paceline.enable=true; nothing else is ever touched.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 no engine, 130 Ctrl-C.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Restore(restore::RestoreArgs),
    Check(check::CheckArgs),
    Policies(policies::PoliciesArgs),
    Replay(replay::ReplayArgs),
    Bench(BenchArgs),
}

/// Parses the command line, does what it says, and reports how that ended.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = error.use_stderr();
            // Without a terminal or a pipe to write to there is nobody to tell.
            drop(error.print());
            return ExitCode::from(if wrong { exit::USAGE } else { 0 });
        }
    };
    log_to_stderr();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(cli.dispatch()),
        Err(error) => Err(error.into()),
    };
    done.unwrap_or_else(|error| {
        complain(&error);
        exit::code(&error)
    })
}

impl Cli {
    async fn dispatch(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => run::run(args, &self.engine).await,
            Command::Restore(args) => restore::run(args, &self.engine).await,
            Command::Check(args) => check::run(args, &self.engine).await,
            Command::Policies(args) => policies::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Bench(mut args) => {
                args.host = Some(self.engine.host.clone());
                let docker = self.engine.connect().await?;
                Ok(match bench::run(args, docker).await? {
                    bench::Outcome::Done => ExitCode::SUCCESS,
                    bench::Outcome::Interrupted => ExitCode::from(exit::INTERRUPTED),
                })
            }
        }
    }
}

/// `PACELINE_LOG` says how much: `info` unless set, in the form of tracing's filters.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("PACELINE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,paceline_allocator=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .init();
}

#[expect(clippy::print_stderr, reason = "the one line that says why the command failed")]
fn complain(error: &anyhow::Error) {
    eprintln!("paceline: {error:#}");
}
