//! Arguments that commands share.

use std::env;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use paceline_grammar::Patterns;
use paceline_reporter::{Builder, Direction, Reporter, StartError};

use super::forward::ForwardArgs;
use super::{Failure, chain, values};
use crate::job::Job;
use crate::merger::Hints;
use crate::say::say;
use crate::shortage::is_shortage;
use crate::source::datagram;
use crate::source::files::Wanted;
use crate::state::{Read, Saved};

/// The sources to read, and the settings of the job.
#[derive(Clone, Debug, Args)]
pub(super) struct SourceArgs {
    /// A log to follow from its start; it need not exist yet. `-` is standard input
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    log: Vec<PathBuf>,
    /// A folder of TensorBoard event files
    #[arg(long, value_name = "DIR", value_parser = values::path())]
    tfevents: Vec<PathBuf>,
    /// A CSV file that a logger writes, for example Lightning's or Keras's
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    csv: Vec<PathBuf>,
    /// A container on this host to attach to
    #[arg(long, value_name = "NAME", value_parser = values::text())]
    pub(super) docker: Vec<String>,
    /// Where to receive statsd datagrams: `host:port` or `unix:/path`
    #[arg(long, value_name = "ADDRESS")]
    pub(super) statsd: Vec<datagram::Address>,
    /// A file that keeps the state over a restart, so that nothing is counted twice
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(super) state: Option<PathBuf>,
    #[command(flatten)]
    pub(super) job: JobArgs,
    #[command(flatten)]
    pub(super) forward: ForwardArgs,
}

/// The settings of the job.
#[derive(Clone, Debug, Args)]
pub(super) struct JobArgs {
    /// The job's name [default: job] [env: `PACELINE_JOB`]
    #[arg(long, value_name = "NAME", value_parser = values::text())]
    job: Option<String>,
    /// A regular expression for the job's own lines, with any of the named groups `loss`,
    /// `val_loss`, `test_loss`, `step`, `epoch`, `total_steps`, `batch_seconds`, `batch_ms`, `rank`
    #[arg(long, value_name = "REGEX", value_parser = values::text())]
    pub(super) pattern: Vec<String>,
    /// The name of the loss to report, if there are several
    #[arg(long, value_name = "NAME", value_parser = values::text())]
    loss: Option<String>,
    /// Samples per batch, for logs that count samples instead of steps
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count)]
    batch_size: Option<u64>,
    /// The loss at which the model becomes usable [env: `PACELINE_ACCEPTABLE`]
    #[arg(long, value_name = "LOSS", allow_hyphen_values = true, value_parser = values::loss)]
    acceptable: Option<f64>,
    /// The loss at which the job is done [env: `PACELINE_OBJECTIVE`]
    #[arg(long, value_name = "LOSS", allow_hyphen_values = true, value_parser = values::loss)]
    objective: Option<f64>,
    /// The target time per batch [env: `PACELINE_BATCH_LATENCY`]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = values::seconds)]
    batch_latency: Option<f64>,
    /// Whether a lower or a higher loss is better
    #[arg(long, value_enum, default_value_t = Way::Minimize)]
    direction: Way,
    /// The planned number of steps, if the job does not report it
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count)]
    total_steps: Option<u64>,
    /// The number of steps that the job expects to need, if it may stop early; at least 1
    /// [env: `PACELINE_EXPECTED_STEPS`]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::count)]
    expected_steps: Option<u64>,
    /// Where to listen: `host:port` or `unix:/path.sock`. It must be free; without it the first free
    /// port from 7230 serves if 7223 is taken [default: 127.0.0.1:7223] [env: `PACELINE_LISTEN`]
    #[arg(long, value_name = "ADDRESS", value_parser = values::text())]
    listen: Option<String>,
    /// A file that always contains the latest progress, also after the process has ended
    /// [env: `PACELINE_STATUS_FILE`]
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    status_file: Option<PathBuf>,
    /// A folder to write TensorBoard event files into, with the losses and the pace at their steps
    /// [env: `PACELINE_TENSORBOARD`]
    #[arg(long, value_name = "DIR", value_parser = values::path())]
    tensorboard_out: Option<PathBuf>,
}

/// Whether a lower or a higher loss is better.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Minimize,
    Maximize,
}

impl SourceArgs {
    /// The files to follow.
    pub(super) fn files(&self) -> Wanted {
        Wanted { logs: self.log.clone(), csvs: self.csv.clone(), events: self.tfevents.clone() }
    }

    /// What a user may not expect of the sources, one line each.
    pub(super) fn remarks(&self) -> Vec<String> {
        let Self { log, tfevents, csv, docker, statsd, .. } = self;
        if [log, tfevents, csv].iter().all(|paths| paths.is_empty())
            && docker.is_empty()
            && statsd.is_empty()
        {
            return vec![
                "no source is given, so only posted reports are read; `paceline-sidecar --help` lists the \
                 sources"
                    .to_owned(),
            ];
        }
        self.named().filter_map(Named::remark).collect()
    }

    /// Refuses what cannot be a source, because it would never be read.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.named().try_for_each(Named::check)
    }

    /// The paths of all sources, except standard input.
    fn named(&self) -> impl Iterator<Item = Named<'_>> {
        let all = [("--log", &self.log), ("--tfevents", &self.tfevents), ("--csv", &self.csv)];
        let named = all.into_iter().flat_map(|(option, paths)| {
            paths.iter().map(move |path| Named { option, path: path.as_path() })
        });
        named.filter(|source| source.path.as_os_str() != "-" || source.option != "--log")
    }

    /// Reads the state of the previous sidecar. Without a whole one, everything begins again.
    pub(super) fn saved(&self) -> Result<Saved, Failure> {
        let Some(path) = &self.state else { return Ok(Saved::default()) };
        let shown = path.display();
        match Saved::read(path) {
            Ok(Read::Whole(saved)) => Ok(*saved),
            Ok(Read::Missing) => Ok(Saved::default()),
            Ok(Read::Cut) => {
                say(format_args!(
                    "--state {shown} is empty or cut: all counts begin again, and the sources are \
                     read from their start"
                ));
                Ok(Saved::default())
            }
            Err(error) => Err(Failure::usage(format!(
                "cannot read --state {shown}: {error}; remove it to begin again, or name another file"
            ))),
        }
    }
}

/// A path that an option names as a source.
#[derive(Clone, Copy, Debug)]
struct Named<'a> {
    option: &'static str,
    path: &'a Path,
}

impl Named<'_> {
    /// Refuses a path that is of another kind, such as a folder in the place of a log.
    fn check(self) -> Result<(), Failure> {
        let Ok(found) = fs::metadata(self.path) else { return Ok(()) };
        let (is_right, expected) = if self.is_folder() {
            (found.is_dir(), "name a folder of event files")
        } else {
            (!found.is_dir() && !found.file_type().is_socket(), "name a file")
        };
        if is_right {
            return Ok(());
        }
        let Self { option, path } = self;
        let kind = kind(found.file_type());
        Err(Failure::usage(format!(
            "cannot read {option} {}: it is {kind}; {expected}",
            path.display()
        )))
    }

    /// What is wrong with it now and may change.
    fn remark(self) -> Option<String> {
        let Self { option, path } = self;
        let error = fs::metadata(path).and_then(|found| self.open(&found)).err()?;
        let shown = path.display();
        Some(if error.kind() == ErrorKind::NotFound {
            format!("{option} {shown} does not exist yet: waiting for it")
        } else {
            format!("cannot read {option} {shown} yet: {error}; trying again")
        })
    }

    /// Opens it once. A pipe would wait for its writer, so only files and folders are tried.
    fn open(self, found: &Metadata) -> io::Result<()> {
        if found.is_dir() {
            fs::read_dir(self.path).map(drop)
        } else if found.is_file() {
            File::open(self.path).map(drop)
        } else {
            Ok(())
        }
    }

    fn is_folder(self) -> bool {
        self.option == "--tfevents"
    }
}

/// What a path leads to, in words.
fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_file() {
        "a file"
    } else {
        "no folder"
    }
}

impl JobArgs {
    /// The patterns, checked.
    pub(super) fn patterns(&self) -> Result<Patterns, Failure> {
        Patterns::new(&self.pattern).map_err(|error| Failure::usage(chain(&error)))
    }

    /// The settings for the merger.
    pub(super) fn hints(&self) -> Hints {
        let Self { loss, batch_size, total_steps, .. } = self;
        Hints { loss: loss.clone(), batch_size: *batch_size, total_steps: *total_steps }
    }

    /// Starts the job and its endpoint; `more` adds to its description.
    pub(super) fn start(&self, more: impl FnOnce(Builder) -> Builder) -> Result<Arc<Job>, Failure> {
        let direction = match self.direction {
            Way::Minimize => Direction::Minimize,
            Way::Maximize => Direction::Maximize,
        };
        // What is given here overrides the environment.
        let mut builder = Reporter::builder("job").direction(direction).from_env();
        if let Some(name) = &self.job {
            builder = builder.job(name);
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
        if let Some(folder) = &self.tensorboard_out {
            builder = builder.tensorboard(folder);
        }
        Job::start(more(builder), self.hints()).map_err(|error| self.not_started(&error))
    }

    /// The same for a command, which runs also where its endpoint cannot start.
    pub(super) fn start_for_command(&self) -> Result<Arc<Job>, Failure> {
        match self.start(|builder| builder) {
            Err(failure) => {
                let message = failure.of_machine()?;
                say(format_args!("{message}; the command runs without an endpoint"));
                Ok(Job::without_endpoint(self.hints()))
            }
            started => started,
        }
    }

    /// Why the endpoint has not started: by a setting, or by the state of the machine.
    fn not_started(&self, error: &StartError) -> Failure {
        let message = chain(error);
        let (StartError::Listen { source, .. } | StartError::Thread(source)) = error else {
            return Failure::usage(message);
        };
        if is_shortage(source) {
            return Failure::running(format!(
                "{message}; raise the limit of open files, processes or memory"
            ));
        }
        if matches!(error, StartError::Thread(_)) {
            return Failure::running(message);
        }
        let variable = env::var_os("PACELINE_LISTEN").unwrap_or_default();
        let is_given = self.listen.is_some() || !variable.to_string_lossy().trim().is_empty();
        if is_given {
            Failure::usage(format!("{message}; choose another address for --listen"))
        } else {
            Failure::running(format!("{message}; name another address by --listen"))
        }
    }
}
