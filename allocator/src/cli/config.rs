//! `paceline config`: checks configuration files, and shows the settings of a run. It needs no engine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use paceline_api::bounded;
use paceline_api::plain;
use paceline_api::usage::BadUsage;

use super::run::RunArgs;
use crate::config::Config;
use crate::log::Log;

/// The JSON Schema of a configuration file. A test generates it from [`Config`](crate::config::Config).
const SCHEMA: &str = include_str!("config.schema.json");

/// Check a configuration file, or show the settings that a run would have
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline config check /etc/paceline/paceline.toml
  paceline config show --config /etc/paceline/paceline.toml
  paceline config show --policy flowcon --param alpha=0.05 > mine.toml
  paceline config schema > paceline.schema.json

None of them needs a container engine, and none changes anything. Exit codes: 0 valid, 2 invalid.")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArgs),
    Show(Box<ShowArgs>),
    /// Print the JSON Schema of a configuration file, for editors and checks
    Schema,
}

/// Check files as `paceline run --config` would
#[derive(Debug, Args)]
struct CheckArgs {
    /// TOML files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Show every setting that a run with these options would have, as a configuration file
#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    run: RunArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ConfigArgs, log: &Log) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Check(args) => check(args, log).await,
        Command::Show(args) => {
            let settings = args.run.shown(log.given())?;
            let text = if args.json {
                serde_json::to_string_pretty(&settings)?
            } else {
                toml::to_string(&settings)?
            };
            plain::print(&format!("{}\n", text.trim_end()))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema => {
            plain::print(SCHEMA)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Checks each file, and prints a line for each.
async fn check(args: &CheckArgs, log: &Log) -> anyhow::Result<ExitCode> {
    let mut wrong = Vec::new();
    for path in &args.files {
        match check_file(path, log).await {
            Ok(()) => plain::print(&format!("{}: valid\n", bounded::shown(path)))?,
            Err(BadUsage(why)) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(BadUsage(wrong.join("\n")).into()) }
}

async fn check_file(path: &Path, log: &Log) -> Result<(), BadUsage> {
    if bounded::is_standard_input(path) {
        let shown = Path::new("standard input");
        let file = Config::read_standard_input()?;
        return RunArgs::with_file(shown).check(&file, log.given()).await;
    }
    let file = Config::read(path)?;
    RunArgs::with_file(path).check(&file, log.given()).await
}
