//! How much is said.
//!
//! A filter is a list of levels: a bare one is for our own modules, `hyper=debug` for somebody
//! else's, which otherwise say only what is wrong: what they say in detail holds whole answers of the
//! engine, containers' environments with their secrets among them. A bare word that is no level is
//! refused, though it could name a module: who misspells a level must not end up with a silent log.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// Our own modules begin so.
const OWN: &str = "paceline";
/// What is said unless somebody wants more or less.
const USUAL: LevelFilter = LevelFilter::INFO;

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// A filter that can be used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Filter {
    text: String,
    targets: Targets,
}

/// A filter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no level: off, error, warn, info, debug or trace is, or MODULE=LEVEL, such as \
     hyper=debug"
)]
pub struct BadFilter(String);

impl Filter {
    pub(super) fn targets(&self) -> Targets {
        self.targets.clone()
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self { text: USUAL.to_string(), targets: with(Targets::new(), USUAL) }
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

/// A bare level.
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
    fn what_nobody_has_set_is_the_level_info() {
        assert_eq!(Filter::default(), "info".parse().unwrap());
    }

    proptest! {
        #[test]
        fn no_filter_makes_the_reader_panic(filter in "[a-z=,: \\[\\]{}]*|\\PC*") {
            drop(filter.parse::<Filter>());
        }
    }
}
