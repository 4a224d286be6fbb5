//! The command line of `paceline bench`.

use std::path::PathBuf;

use clap::Args;

/// Run a schedule of real containers once under each policy and compare
///
/// Every policy gets the same jobs at the same times, with the machine otherwise as it is: close
/// what else is running. Before that, each job runs alone for some seconds, which tells how fast
/// it is with the machine for itself, so that its work can be given in seconds.
///
/// What is made is removed again, also after a failure and Ctrl-C: containers are called
/// `paceline-bench-RUN-JOB` and labelled `paceline.bench=RUN`. Other containers are left alone.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paceline bench examples/schedules/demo.toml --data ~/mnist
  paceline bench demo.toml --policy none,flowcon --json > result.json

The report, the samples, the frames (paceline replay reads them) and each job's log are written to
paceline-bench/NAME unless --report says otherwise.

Exit codes: 0 every job succeeded, 1 a job or the bench failed, 2 the schedule cannot be used,
130 ended by Ctrl-C.")]
pub struct BenchArgs {
    /// The schedule: a TOML file of jobs, arrival times and policies
    pub schedule: PathBuf,

    /// Run these policies instead of the schedule's, separated by commas
    #[arg(long = "policy", value_name = "NAME,…", value_delimiter = ',')]
    pub policies: Vec<String>,

    /// A folder that every job sees, read-only, as /data (and `PACELINE_DATA=/data`)
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Where to write the report; the other files go beside it
    /// [default: paceline-bench/NAME/report.html]
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON document instead of tables
    #[arg(long)]
    pub json: bool,

    /// The engine's address for the allocator, where it is not the usual one.
    #[arg(skip)]
    pub host: Option<String>,
}
