//! The command line.

mod actuator_arg;
mod agent;
mod audit;
mod check;
mod compared;
mod control_args;
mod engine;
mod experiments;
mod explain;
mod figures;
mod fit;
mod manager;
mod node_args;
mod orders;
mod own_container;
mod parallel;
mod plain;
mod policies;
mod policy_args;
mod priority;
mod replay;
mod restore;
mod run;
mod scenarios;
mod simulate;
mod state;
mod status;
mod submit;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::{self, BenchArgs};
use crate::exit::{self, BadUsage};
use crate::log::{self, Log, LogArgs};
use engine::EngineArgs;

/// Move CPU between the training jobs that share a machine
#[derive(Debug, Parser)]
#[command(name = "paceline", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    log: LogArgs,

    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  paceline run                             manage every opted-in container of this machine
  paceline run --dry-run                   say what would be done, write nothing
  paceline check vae                       what the allocator sees of container vae
  paceline status                          what the running allocator knows; `top` as it changes
  paceline explain vae                     the last decisions about job vae
  paceline pin vae 25%                     hold its limit; `release`, `manage`, `set`, `guard` …
  paceline restore                         put limits back after a crash
  paceline agent, paceline manager         the same on every machine of a Swarm, and over all of them
  paceline submit job.toml                 a distributed job for the Swarm
  paceline policies                        what there is to choose from
  paceline replay --policy tradl frames.jsonl
  paceline simulate FC-3                   policies side by side, and the best possible
  paceline fit frames.jsonl > mine.toml    a scenario of what was recorded
  paceline bench examples/schedules/demo.toml

A container opts in by the label paceline.enable=true; nothing else is ever touched.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 no engine, 130 Ctrl-C.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Agent(Box<agent::AgentArgs>),
    Manager(Box<manager::ManagerArgs>),
    Submit(submit::SubmitArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
    Explain(explain::ExplainArgs),
    #[command(flatten)]
    Orders(orders::Orders),
    Audit(audit::AuditArgs),
    Restore(restore::RestoreArgs),
    Check(check::CheckArgs),
    Policies(policies::PoliciesArgs),
    Replay(replay::ReplayArgs),
    Simulate(simulate::SimulateArgs),
    Scenarios(scenarios::ScenariosArgs),
    Fit(fit::FitArgs),
    Bench(BenchArgs),
    Experiments(experiments::ExperimentsArgs),
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
    cli.start().unwrap_or_else(|error| {
        complain(&error);
        exit::code(&error)
    })
}

impl Cli {
    fn start(self) -> anyhow::Result<ExitCode> {
        let log = log::to_stderr(self.log)
            .map_err(|error| BadUsage(format!("{}: {error}", log::FILTER)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.dispatch(log))
    }

    async fn dispatch(self, log: Log) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => run::run(*args, &self.engine, log).await,
            Command::Agent(args) => agent::run(*args, &self.engine, log).await,
            Command::Manager(args) => Box::pin(manager::run(*args, &self.engine, &log)).await,
            Command::Submit(args) => submit::run(args, &self.engine).await,
            Command::Status(args) => status::run(args).await,
            Command::Top(args) => top::run(args).await,
            Command::Explain(args) => explain::run(args).await,
            Command::Orders(orders) => orders::run(orders).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Restore(args) => restore::run(args, &self.engine, &log).await,
            Command::Check(args) => check::run(args, &self.engine, &log).await,
            Command::Policies(args) => policies::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Scenarios(args) => scenarios::run(&args),
            Command::Fit(args) => fit::run(&args),
            Command::Experiments(args) => experiments::run(&args),
            Command::Bench(mut args) => {
                args.host = Some(self.engine.host.clone());
                args.state = state::by_environment();
                let docker = self.engine.connect().await?;
                Ok(match bench::run(args, docker).await? {
                    bench::Outcome::Done => ExitCode::SUCCESS,
                    bench::Outcome::Interrupted => ExitCode::from(exit::INTERRUPTED),
                })
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "the one line that says why the command failed")]
fn complain(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let lines: Vec<String> = text.lines().map(plain::plain).collect();
    eprintln!("paceline: {}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_can_be_parsed() {
        Cli::command().debug_assert();
    }
}
