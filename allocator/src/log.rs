//! What the program says of its work, on standard error.
//!
//! How much is said can be changed while it runs. A filter is a list of levels: a bare one is for our
//! own modules, `hyper=debug` for somebody else's, which otherwise say only what is wrong: what they
//! say in detail holds whole answers of the engine, containers' environments with their secrets
//! among them. A bare word that is no level is refused, though it could name a module: who misspells
//! a level must not end up with a silent log.

use std::env::VarError;
use std::fmt::{self, Display, Formatter};
use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::live::{Answer, Refusal};

/// The variable that says how much is said at the start.
pub const FILTER: &str = "PACELINE_LOG";
/// The variable that says in which form.
pub const FORMAT: &str = "PACELINE_LOG_FORMAT";
const DEFAULT: &str = "info";
/// Our own modules begin so.
const OWN: &str = "paceline";

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct LogArgs {
    /// The form of the log: text for people, json for programs, one object a line
    #[arg(long, global = true, env = FORMAT, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: Format,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
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

/// A filter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no level: off, error, warn, info, debug or trace is, or MODULE=LEVEL, such as \
     hyper=debug"
)]
pub struct BadFilter(String);

/// The log of this process.
#[derive(Clone, Debug)]
pub struct Log {
    format: Format,
    level: reload::Handle<Targets, Registry>,
}

impl Log {
    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Says more or less from now on. A filter that cannot be used leaves everything as it is.
    pub fn set_level(&self, filter: &str) -> Answer {
        let targets = read(filter).map_err(|error| Refusal::Impossible(error.to_string()))?;
        self.level.reload(targets).map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(format!("the log's level is {filter:?}"))
    }
}

/// Begins to write to standard error: as much as `PACELINE_LOG` says.
pub fn to_stderr(args: LogArgs) -> Result<Log, BadFilter> {
    let filter = match std::env::var(FILTER) {
        Ok(filter) if !filter.is_empty() => filter,
        Ok(_) | Err(VarError::NotPresent) => DEFAULT.to_owned(),
        Err(VarError::NotUnicode(filter)) => filter.to_string_lossy().into_owned(),
    };
    let ansi = std::io::stderr().is_terminal();
    let (subscriber, log) = subscriber(args.log_format, read(&filter)?, ansi, std::io::stderr);
    subscriber.init();
    Ok(log)
}

fn subscriber<W>(
    format: Format,
    targets: Targets,
    ansi: bool,
    writer: W,
) -> (impl Subscriber + Send + Sync, Log)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, level) = reload::Layer::new(targets);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match format {
        Format::Text => lines.with_ansi(ansi).with_target(false).boxed(),
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    };
    (tracing_subscriber::registry().with(filter).with(lines), Log { format, level })
}

fn read(filter: &str) -> Result<Targets, BadFilter> {
    let mut targets = Targets::new();
    for word in filter.split(',').map(str::trim) {
        let bad = || BadFilter(word.to_owned());
        let (module, level) = match word.rsplit_once('=') {
            Some((module, level)) => (Some(module), level),
            None => (None, word),
        };
        let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(level));
        let (_, level) = *known.ok_or_else(bad)?;
        targets = match module {
            Some(module) if is_module(module) => targets.with_target(module, level),
            Some(_) => return Err(bad()),
            None => targets.with_target(OWN, level).with_default(level.min(LevelFilter::WARN)),
        };
    }
    Ok(targets)
}

fn is_module(name: &str) -> bool {
    let may = |letter: char| letter.is_ascii_alphanumeric() || "_:-".contains(letter);
    !name.is_empty() && name.chars().all(may)
}

#[cfg(test)]
mod tests;
