//! The command line of `paceline bench`.

use std::path::PathBuf;

use clap::Args;

/// Run schedules of real containers under policies and compare them
///
/// Every arm of a schedule (a policy, its variant, parameters and enforcement) gets the same jobs at
/// the same times, as often as the schedule says, with the machine otherwise as it is: close what
/// else is running. Before that, each job runs alone for some seconds, which tells how fast it is
/// with the machine for itself, so that its work can be given in seconds. Figures of runs that other
/// work disturbed all the same are marked.
///
/// A bench that was interrupted goes on with the first run that was not finished when it is started
/// again. What is made is removed again, also after a failure and Ctrl-C: containers are called
/// `paceline-bench-RUN-JOB` and labelled `paceline.bench=RUN`. Other containers are left alone.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paceline bench examples/schedules/demo.toml --data ~/mnist
  paceline bench examples/schedules/r-fc3.toml examples/schedules/r-tr5.toml --data ~/mnist
  paceline bench r-fc3.toml --full --fresh --data ~/mnist
  paceline bench r-fc3.toml --redo-spoiled --data ~/mnist
  paceline bench demo.toml --arm none,flowcon --json > result.json

The report, the figures (result.json), and for each run its frames (paceline replay and fit read
them), samples, audit log and each job's log are written to paceline-bench/NAME unless --report says
otherwise. examples/schedules/README.md tells what a schedule may say.

Exit codes: 0 every job succeeded, 1 a job or the bench failed, 2 a schedule, the folder of its
results or an image cannot be used, and nothing was begun, 130 ended by Ctrl-C.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct BenchArgs {
    /// TOML files of jobs, arrival times and arms; each is a bench of its own, one after the other
    #[arg(value_name = "SCHEDULE", required = true)]
    pub schedules: Vec<PathBuf>,

    /// Run these arms, or policies as they come, instead of the schedule's, separated by commas
    #[arg(long = "arm", alias = "policy", value_name = "NAME,…", value_delimiter = ',')]
    pub arms: Vec<String>,

    /// As many repeats as the schedule's long form has
    #[arg(long)]
    pub full: bool,

    /// Forget what was measured before, and begin anew
    #[arg(long)]
    pub fresh: bool,

    /// Repeat the runs that other work on the machine disturbed
    #[arg(long, conflicts_with = "fresh")]
    pub redo_spoiled: bool,

    /// A folder that every job sees, read-only, as /data (and `PACELINE_DATA=/data`)
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Where to write the report; the other files go beside it
    /// [default: paceline-bench/NAME/report.html]
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON document for each schedule instead of tables
    #[arg(long)]
    pub json: bool,

    /// The engine's address for the allocator, where it is not the usual one.
    #[arg(skip)]
    pub host: Option<String>,

    /// Where an allocator that is in use keeps what must outlive it.
    #[arg(skip)]
    pub state: PathBuf,
}
