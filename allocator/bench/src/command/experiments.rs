//! `paceline experiments`: the results of several benches as one page of Markdown.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::experiments;

/// Write the results of benches as one page of Markdown, with pictures beside it
///
/// Each folder is one that `paceline bench` has written. The page shows its tables, its pictures and
/// the simulator's predictions. It shows each of the paper's claims beside the measured figure, with
/// the reason where they differ. The command measures nothing itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline experiments paceline-bench/R-FC3 paceline-bench/R-TR5 -o EXPERIMENTS.md
  paceline experiments paceline-bench/* --commit \"$(git rev-parse --short HEAD)\" \\
      -o images/EXPERIMENTS.md

Pictures go to the folder `experiments` beside the page. A folder without a result is reported and
left out, and the exit code is 2.")]
pub struct ExperimentsArgs {
    /// Folders that `paceline bench` has written
    #[arg(required = true, value_name = "FOLDER")]
    results: Vec<PathBuf>,

    /// The page to write
    #[arg(short, long, value_name = "FILE.md")]
    output: PathBuf,

    /// The commit of the program that ran the benches, to print on the page
    #[arg(long, value_name = "HASH")]
    commit: Option<String>,
}

/// Collects the results of benches as one page.
pub fn run(args: &ExperimentsArgs) -> anyhow::Result<ExitCode> {
    experiments::write(&args.results, &args.output, args.commit.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
