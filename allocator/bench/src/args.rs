//! The command line of `paceline bench`.

use std::path::PathBuf;

use clap::Args;

/// Run schedules of real containers under policies and compare them
///
/// Every arm of a schedule (a policy, its variant, parameters and enforcement) gets the same jobs at
/// the same times, as often as the schedule says. Close other programs first: the bench marks the
/// figures of runs that other work disturbed. Before the first run, each job runs alone for some
/// seconds. This calibration measures its speed, so that a schedule can give its work in seconds.
///
/// An interrupted bench continues with the first unfinished run when you start it again. The bench
/// removes the containers that it creates, also after a failure or Ctrl-C. They are called
/// `paceline-bench-RUN-JOB` and labelled `paceline.bench=RUN`. Other containers are left alone.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paceline bench examples/schedules/demo.toml --data ~/mnist
  paceline bench examples/schedules/r-fc3.toml examples/schedules/r-tr5.toml --data ~/mnist
  paceline bench r-fc3.toml --full --fresh --data ~/mnist
  paceline bench r-fc3.toml --redo-spoiled --data ~/mnist
  paceline bench demo.toml --arm none,flowcon --json > result.json

The bench writes to paceline-bench/NAME, or to the folder of the file that --report names: the
report, the figures (result.json) and, for each run, frames (paceline replay and fit read them),
samples, the audit log and each job's log. examples/schedules/README.md describes the format of
schedules.

Exit codes: 0 every job succeeded, 1 a job or the bench failed, 2 a schedule, the folder of its
results or an image cannot be used and nothing was started, 130 ended by Ctrl-C.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct BenchArgs {
    /// TOML files of jobs, arrival times and arms; each file is one bench, and they run one by one
    #[arg(value_name = "SCHEDULE", required = true)]
    pub schedules: Vec<PathBuf>,

    /// Run these arms instead of the schedule's: names of its arms or of policies, separated by commas
    #[arg(long = "arm", alias = "policy", value_name = "NAME,…", value_delimiter = ',')]
    pub arms: Vec<String>,

    /// Run the schedule's full form: the repeats of `[full]`, and arms with `full = true`
    #[arg(long)]
    pub full: bool,

    /// Delete earlier measurements and start again
    #[arg(long)]
    pub fresh: bool,

    /// Repeat the runs that other work on the machine disturbed
    #[arg(long, conflicts_with = "fresh")]
    pub redo_spoiled: bool,

    /// A folder that every job sees read-only as /data (and `PACELINE_DATA=/data`)
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Where to write the report; the other files go beside it
    /// [default: paceline-bench/NAME/report.html]
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON document for each schedule instead of tables
    #[arg(long)]
    pub json: bool,

    /// The container engine's address for the allocator; `None` is the default one.
    #[arg(skip)]
    pub host: Option<String>,

    /// The state folder of an allocator in production.
    #[arg(skip)]
    pub state: PathBuf,
}
