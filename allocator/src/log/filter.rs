//! The filter of log levels.
//!
//! A filter is a list of levels. A bare level is for our own modules; `hyper=debug` is for a
//! library. By default libraries log only warnings. Their details contain complete answers of
//! Docker, with the environments of containers and the secrets in them. A bare word that is not a
//! level is refused, although it could name a module: a misspelled level must not give a silent
//! log.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// The prefix of our own modules.
const OWN: &str = "paceline";
/// The default level.
const DEFAULT: LevelFilter = LevelFilter::INFO;

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// A valid filter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        with = "String",
        rename = "LogFilter",
        description = "Levels of the log, separated by commas: off, error, warn, info, debug or trace for \
            our own modules, and MODULE=LEVEL for a library.",
        extend(
            "pattern" = "^( *([a-zA-Z0-9_:]+=)?[a-zA-Z]+ *)(, *([a-zA-Z0-9_:]+=)?[a-zA-Z]+ *)*$",
            "examples" = ["info", "debug", "info,hyper=debug"]
        )
    )
)]
pub struct Filter {
    text: String,
    targets: Targets,
}

/// An invalid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid log level {0:?}: expected off, error, warn, info, debug or trace, or MODULE=LEVEL, \
     for example hyper=debug"
)]
pub struct BadFilter(String);

impl Filter {
    pub(super) fn targets(&self) -> Targets {
        self.targets.clone()
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self { text: DEFAULT.to_string(), targets: with(Targets::new(), DEFAULT) }
    }
}

impl FromStr for Filter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        let mut targets = Targets::new();
        for word in text.split(',').map(str::trim) {
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
                None => with(targets, level),
            };
        }
        Ok(Self { text: text.to_owned(), targets })
    }
}

impl TryFrom<String> for Filter {
    type Error = BadFilter;

    fn try_from(text: String) -> Result<Self, BadFilter> {
        text.parse()
    }
}

impl Display for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Adds a bare level.
fn with(targets: Targets, level: LevelFilter) -> Targets {
    targets.with_target(OWN, level).with_default(level.min(LevelFilter::WARN))
}

fn is_module(name: &str) -> bool {
    let may = |letter: char| letter.is_ascii_alphanumeric() || "_:-".contains(letter);
    !name.is_empty() && name.chars().all(may)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn default_level_is_info() {
        assert_eq!(Filter::default(), "info".parse().unwrap());
    }

    proptest! {
        #[test]
        fn parsing_any_filter_never_panics(filter in "[a-z=,: \\[\\]{}]*|\\PC*") {
            drop(filter.parse::<Filter>());
        }
    }
}
