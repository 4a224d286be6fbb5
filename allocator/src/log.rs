//! What the program says of its work, on standard error. How much is said and in which form can be
//! changed while it runs.

mod filter;

use std::env::VarError;
use std::fmt::{self, Debug, Display, Formatter};
use std::io::IsTerminal;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::live::{Answer, Refusal};

pub use filter::{BadFilter, Filter};

/// The variable that says how much is said at the start.
pub const FILTER: &str = "PACELINE_LOG";
/// The variable that says in which form.
pub const FORMAT: &str = "PACELINE_LOG_FORMAT";

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct LogArgs {
    /// The form of the log: text for people, json for programs, one object a line [default: text]
    #[arg(long, global = true, env = FORMAT, value_name = "FORMAT", value_enum)]
    pub log_format: Option<Format>,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A sentence behind its time and level.
    #[default]
    #[value(help = None)]
    Text,
    /// A JSON object.
    #[value(help = None)]
    Json,
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// How the log is to be by the command line and the environment, as far as these say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// How much is said.
    pub level: Option<Filter>,
    /// In which form.
    pub format: Option<Format>,
}

impl Given {
    /// The same for another process, which is told of the level by its environment.
    pub fn words(&self) -> Option<String> {
        self.format.map(|format| format!("--log-format={format}"))
    }
}

/// The log of this process.
#[derive(Clone)]
pub struct Log {
    given: Given,
    level: reload::Handle<Targets, Registry>,
    lines: reload::Handle<Lines, Filtered>,
    form: Arc<dyn Fn(Format) -> Lines + Send + Sync>,
}

type Filtered = Layered<reload::Layer<Targets, Registry>, Registry>;
type Lines = Box<dyn Layer<Filtered> + Send + Sync>;

impl Debug for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("given", &self.given).finish_non_exhaustive()
    }
}

impl Log {
    /// What was given at the start.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Says more or less from now on. A filter that cannot be used leaves everything as it is.
    pub fn set_level(&self, filter: &str) -> Answer {
        let level: Filter =
            filter.parse().map_err(|error: BadFilter| Refusal::Impossible(error.to_string()))?;
        self.set_filter(&level).map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(format!("the log's level is {filter:?}"))
    }

    /// Says so much from now on.
    pub fn set_filter(&self, level: &Filter) -> Result<(), reload::Error> {
        self.level.reload(level.targets())
    }

    /// Is written in this form from now on.
    pub fn set_format(&self, format: Format) -> Result<(), reload::Error> {
        self.lines.reload((self.form)(format))
    }
}

/// Begins to write to standard error: as much as `PACELINE_LOG` says.
pub fn to_stderr(args: LogArgs) -> Result<Log, BadFilter> {
    let level = match std::env::var(FILTER) {
        Ok(filter) if !filter.is_empty() => Some(filter),
        Ok(_) | Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(filter)) => Some(filter.to_string_lossy().into_owned()),
    };
    let level = level.map(|level| level.parse()).transpose()?;
    let ansi = std::io::stderr().is_terminal();
    let given = Given { level, format: args.log_format };
    let (subscriber, log) = subscriber(given, ansi, std::io::stderr);
    subscriber.init();
    Ok(log)
}

fn subscriber<W>(given: Given, ansi: bool, writer: W) -> (impl Subscriber + Send + Sync, Log)
where
    W: for<'a> MakeWriter<'a> + Clone + Send + Sync + 'static,
{
    let (filter, level) = reload::Layer::new(given.level.clone().unwrap_or_default().targets());
    let form = move |format| lines(format, ansi, writer.clone());
    let (lines, handle) = reload::Layer::new(form(given.format.unwrap_or_default()));
    let log = Log { given, level, lines: handle, form: Arc::new(form) };
    (tracing_subscriber::registry().with(filter).with(lines), log)
}

fn lines<W>(format: Format, ansi: bool, writer: W) -> Lines
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Where nobody reads any more, such as on a terminal that was closed, a line is lost. To tell of
    // that in the same place would end the process by a panic, and leave its limits behind.
    let lines = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(writer);
    match format {
        Format::Text => lines.with_ansi(ansi).with_target(false).boxed(),
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    }
}

#[cfg(test)]
mod tests;
