//! `paceline experiments`: the results of several benches as one page of Markdown.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::bench::experiments;

/// Write the results of benches as one page of Markdown, with pictures beside it
///
/// Each folder is one that `paceline bench` has written: the page has its tables, its pictures, what
/// the simulator predicted, and each of the paper's claims beside what was measured, with the reason
/// where they differ. Nothing is measured anew.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  paceline experiments paceline-bench/R-FC3 paceline-bench/R-TR5 -o EXPERIMENTS.md
  paceline experiments paceline-bench/* --commit \"$(git rev-parse --short HEAD)\" \\
      -o images/EXPERIMENTS.md

Pictures go to the folder `experiments` beside the page. A folder without a result is left out
and named, and the exit code is 2.")]
pub(super) struct ExperimentsArgs {
    /// Folders of results
    #[arg(required = true, value_name = "FOLDER")]
    results: Vec<PathBuf>,

    /// The page
    #[arg(short, long, value_name = "FILE.md")]
    output: PathBuf,

    /// The commit of the program that ran the benches, for the page's reader
    #[arg(long, value_name = "HASH")]
    commit: Option<String>,
}

pub(super) fn run(args: &ExperimentsArgs) -> anyhow::Result<ExitCode> {
    experiments::write(&args.results, &args.output, args.commit.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
