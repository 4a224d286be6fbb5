//! The log on standard error. Its level and format can change while the program runs.
//!
//! Logging never blocks: lines wait in a bounded buffer, and are lost if that is full ([`writer`]). One
//! job can cause only so many lines, and its text cannot begin a line of its own (`lines`).

mod filter;
mod lines;
pub mod writer;

use std::env::VarError;
use std::fmt::{self, Debug, Display, Formatter};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use paceline_api::live::{Answer, Refusal};
use serde::Deserialize;
use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use writer::{FLUSH_TIMEOUT, LineWriter, Note};

pub use filter::{BadFilter, Filter};

/// The environment variable for the level at the start.
pub const FILTER: &str = "PACELINE_LOG";
/// The environment variable for the format.
pub const FORMAT: &str = "PACELINE_LOG_FORMAT";

/// Options for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct LogArgs {
    /// The format of the log: text, or json with one object per line [default: text]
    #[arg(long, global = true, help_heading = "Log", env = FORMAT, value_name = "FORMAT", value_enum)]
    pub log_format: Option<Format>,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LogFormat"))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Time, level and a sentence.
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

/// The log settings of the command line and the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// The level.
    pub level: Option<Filter>,
    /// The format.
    pub format: Option<Format>,
}

impl Given {
    /// The same for another process, as an argument. The level is passed by its environment.
    pub fn arguments(&self) -> Option<String> {
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
    /// Where the lines go; `None` in tests that keep them in memory.
    writer: Option<LineWriter>,
}

type Filtered = Layered<reload::Layer<Targets, Registry>, Registry>;
type Lines = Box<dyn Layer<Filtered> + Send + Sync>;

impl Debug for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("given", &self.given).finish_non_exhaustive()
    }
}

impl Log {
    /// The settings that were given at the start.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Changes the level. An invalid filter changes nothing.
    pub fn set_level(&self, filter: &str) -> Answer {
        let level: Filter =
            filter.parse().map_err(|error: BadFilter| Refusal::Impossible(error.to_string()))?;
        self.set_filter(&level).map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(format!("the log level is now {filter:?}"))
    }

    /// Changes the filter.
    pub fn set_filter(&self, level: &Filter) -> Result<(), reload::Error> {
        self.level.reload(level.targets())
    }

    /// Changes the format.
    pub fn set_format(&self, format: Format) -> Result<(), reload::Error> {
        if let Some(writer) = &self.writer {
            writer.set_note(lost(format));
        }
        self.lines.reload((self.form)(format))
    }

    /// Writes a text as it is, after the lines so far.
    pub fn print(&self, text: &str) {
        if let Some(writer) = &self.writer {
            // It takes every line, or counts it as lost.
            drop(writer.clone().write_all(text.as_bytes()));
        }
    }

    /// Waits until the lines are written, for a bounded time: their reader may not read.
    pub fn flush(&self) {
        if let Some(writer) = &self.writer {
            writer.flush(FLUSH_TIMEOUT);
        }
    }
}

/// The line that says how many were lost.
fn lost(format: Format) -> Note {
    Box::new(move |count| {
        let message = format!("{count} lines of the log are lost: standard error was not read");
        lines::note(format, &message, count)
    })
}

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is invalid.
    #[error("invalid {FILTER}")]
    Filter(#[from] BadFilter),
    /// The thread that writes could not be started.
    #[error("cannot start the log")]
    Thread(#[from] io::Error),
}

/// Starts the log on standard error, with the level of `PACELINE_LOG`.
pub fn to_stderr(args: LogArgs) -> Result<Log, LogError> {
    let level = match std::env::var(FILTER) {
        Ok(filter) if !filter.is_empty() => Some(filter),
        Ok(_) | Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(filter)) => Some(filter.to_string_lossy().into_owned()),
    };
    let level = level.map(|level| level.parse()).transpose()?;
    let ansi = io::stderr().is_terminal();
    let given = Given { level, format: args.log_format };
    let writer = LineWriter::start(io::stderr(), lost(args.log_format.unwrap_or_default()))?;
    let lines = writer.clone();
    let (subscriber, log) = subscriber(given, ansi, move || lines.clone());
    subscriber.init();
    Ok(Log { writer: Some(writer), ..log })
}

fn subscriber<W>(given: Given, ansi: bool, writer: W) -> (impl Subscriber + Send + Sync, Log)
where
    W: for<'a> MakeWriter<'a> + Clone + Send + Sync + 'static,
{
    let (filter, level) = reload::Layer::new(given.level.clone().unwrap_or_default().targets());
    let form = move |format| lines::layer(format, ansi, writer.clone());
    let (layer, handle) = reload::Layer::new(form(given.format.unwrap_or_default()));
    let log = Log { given, level, lines: handle, form: Arc::new(form), writer: None };
    (tracing_subscriber::registry().with(filter).with(layer), log)
}

#[cfg(test)]
mod tests;
