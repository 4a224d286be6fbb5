//! What commands have in common.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use paceline_reporter::wire::Progress;
use paceline_reporter::{Direction, Reporter};

use super::{Failure, chain};
use crate::desk::Hints;
use crate::grammar::Patterns;
use crate::job::Job;
use crate::source::files::Wanted;
use crate::state::Saved;

/// What is read, and what is known of the job.
#[derive(Clone, Debug, Args)]
pub(super) struct SourceArgs {
    /// A log to follow from its start, which need not be there yet; `-` is standard input
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// A folder of TensorBoard event files
    #[arg(long, value_name = "DIR")]
    tfevents: Vec<PathBuf>,
    /// A CSV file that a logger writes, such as Lightning's or Keras's
    #[arg(long, value_name = "FILE")]
    csv: Vec<PathBuf>,
    /// A container of this host to attach to
    #[arg(long, value_name = "NAME")]
    pub(super) docker: Vec<String>,
    /// Where to take datagrams of statsd's form: `host:port` or `unix:/path`
    #[arg(long, value_name = "ADDRESS")]
    pub(super) statsd: Vec<String>,
    /// A file to go on from after a restart, so that nothing is counted twice
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// What is known of the job.
#[derive(Clone, Debug, Args)]
pub(super) struct JobArgs {
    /// The job's name
    #[arg(long, env = "PACELINE_JOB", default_value = "job", value_name = "NAME")]
    job: String,
    /// A regular expression for lines that nothing else reads, with any of the named groups `loss`,
    /// `val_loss`, `test_loss`, `step`, `epoch`, `total_steps`, `batch_seconds`, `batch_ms`, `rank`
    #[arg(long, value_name = "REGEX")]
    pub(super) pattern: Vec<String>,
    /// The name of the loss to take, where there are several
    #[arg(long, value_name = "NAME")]
    loss: Option<String>,
    /// Samples in a batch, for logs that count samples and not steps
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// The loss from which on the model is usable
    #[arg(long, env = "PACELINE_ACCEPTABLE", value_name = "LOSS", allow_hyphen_values = true)]
    acceptable: Option<f64>,
    /// The loss at which the job is done
    #[arg(long, env = "PACELINE_OBJECTIVE", value_name = "LOSS", allow_hyphen_values = true)]
    objective: Option<f64>,
    /// The time that a batch is meant to take
    #[arg(long, env = "PACELINE_BATCH_LATENCY", value_name = "SECONDS")]
    batch_latency: Option<f64>,
    /// Which way the loss is meant to go
    #[arg(long, value_enum, default_value_t = Way::Minimize)]
    direction: Way,
    /// How many steps the job means to take, where it does not say so itself
    #[arg(long, value_name = "N")]
    total_steps: Option<u64>,
    /// How many steps the job expects to take, where it may stop early: from 1 on
    #[arg(long, env = "PACELINE_EXPECTED_STEPS", value_name = "N")]
    expected_steps: Option<u64>,
    /// Where to listen: `host:port` or `unix:/path.sock` [default: 127.0.0.1:7223, or the first free
    /// port from 7230 on]
    #[arg(long, env = "PACELINE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// A file that always holds the progress, for when the process has gone
    #[arg(long, env = "PACELINE_STATUS_FILE", value_name = "FILE")]
    status_file: Option<PathBuf>,
}

/// Which way a loss is meant to go.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Minimize,
    Maximize,
}

impl SourceArgs {
    /// The files among them.
    pub(super) fn files(&self) -> Wanted {
        Wanted { logs: self.log.clone(), csvs: self.csv.clone(), events: self.tfevents.clone() }
    }

    /// What a predecessor left.
    pub(super) fn saved(&self) -> Result<Saved, Failure> {
        let Some(path) = &self.state else { return Ok(Saved::default()) };
        let wrong = |error| Failure::usage(format!("--state {}: {error}", path.display()));
        Saved::read(path).map_err(wrong)
    }
}

impl JobArgs {
    /// The patterns, checked.
    pub(super) fn patterns(&self) -> Result<Patterns, Failure> {
        Patterns::new(&self.pattern).map_err(|error| Failure::usage(chain(&error)))
    }

    /// What a person knows better.
    pub(super) fn hints(&self) -> Hints {
        let Self { loss, batch_size, total_steps, .. } = self;
        Hints { loss: loss.clone(), batch_size: *batch_size, total_steps: *total_steps }
    }

    /// Starts the endpoint, which goes on from what a predecessor had come to.
    pub(super) fn start(&self, before: Option<Progress>) -> Result<Arc<Job>, Failure> {
        let direction = match self.direction {
            Way::Minimize => Direction::Minimize,
            Way::Maximize => Direction::Maximize,
        };
        let mut builder = Reporter::builder(self.job.as_str()).direction(direction).from_env();
        if let Some(progress) = before {
            builder = builder.resume(progress);
        }
        if let Some(loss) = self.acceptable {
            builder = builder.acceptable(loss);
        }
        if let Some(loss) = self.objective {
            builder = builder.objective(loss);
        }
        if let Some(seconds) = self.batch_latency {
            builder = builder.batch_latency(seconds);
        }
        if let Some(steps) = self.total_steps {
            builder = builder.total_steps(steps);
        }
        if let Some(steps) = self.expected_steps {
            builder = builder.expected_steps(steps);
        }
        if let Some(address) = &self.listen {
            builder = builder.listen(address);
        }
        if let Some(path) = &self.status_file {
            builder = builder.status_file(path);
        }
        Job::start(builder, self.hints()).map_err(|error| Failure::usage(chain(&error)))
    }
}
