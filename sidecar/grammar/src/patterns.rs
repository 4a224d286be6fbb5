//! The user's own patterns.

use paceline_lines::number::floor;
use paceline_lines::observation::{Loss, Observation, Phase, Span};
use paceline_lines::scan;
use regex::Regex;
use thiserror::Error;

use super::draft::Draft;

/// The allowed groups of a pattern.
const ALLOWED: [&str; 9] = [
    "loss",
    "val_loss",
    "test_loss",
    "step",
    "epoch",
    "total_steps",
    "batch_seconds",
    "batch_ms",
    "rank",
];

/// Regular expressions with named groups, tried in their order.
///
/// The groups are `loss`, `val_loss`, `test_loss`, `step`, `epoch`, `total_steps`, `batch_seconds`,
/// `batch_ms` and `rank`. The text that a group matches must be a number.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    patterns: Vec<Regex>,
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PatternError {
    /// It is not a regular expression, or too large.
    #[error("invalid pattern {pattern:?}: expected a regular expression: {cause}")]
    Invalid {
        /// The pattern.
        pattern: String,
        /// The cause, in one line.
        cause: String,
    },
    /// One of its groups has an unknown name.
    #[error(
        "invalid pattern {pattern:?}: unknown group {group:?}; expected any of {}",
        ALLOWED.join(", ")
    )]
    UnknownGroup {
        /// The pattern.
        pattern: String,
        /// The group's name.
        group: String,
    },
    /// It has no named group.
    #[error(
        "invalid pattern {pattern:?}: expected a named group, for example (?P<loss>[0-9.]+); any of {}",
        ALLOWED.join(", ")
    )]
    NoGroup {
        /// The pattern.
        pattern: String,
    },
}

impl Patterns {
    /// Checks and compiles `patterns`.
    ///
    /// # Errors
    ///
    /// The first invalid pattern.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, PatternError> {
        let patterns = patterns.into_iter().map(|pattern| compile(pattern.as_ref()));
        Ok(Self { patterns: patterns.collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a pattern matches `line`. Writes the observation of the first match into `draft`.
    pub(super) fn read(&self, line: &str, draft: &mut Draft) -> bool {
        let found = self.patterns.iter().find_map(|pattern| read(pattern, line));
        found.map(|found| draft.found = found).is_some()
    }
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let named = || pattern.to_owned();
    let regex = Regex::new(pattern).map_err(|error| {
        let cause = cause(&error);
        PatternError::Invalid { pattern: named(), cause }
    })?;
    let mut names = regex.capture_names().flatten().peekable();
    if names.peek().is_none() {
        return Err(PatternError::NoGroup { pattern: named() });
    }
    match names.find(|name| !ALLOWED.contains(name)) {
        Some(group) => {
            Err(PatternError::UnknownGroup { pattern: named(), group: group.to_owned() })
        }
        None => Ok(regex),
    }
}

/// The last line of an error: those before it show the pattern again, with a mark below.
fn cause(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn read(pattern: &Regex, line: &str) -> Option<Observation> {
    let captures = pattern.captures(line)?;
    let number = |group| captures.name(group).and_then(|found| scan::whole(found.as_str()));
    let count = |group| number(group).and_then(floor);
    let positive = |group| number(group).filter(|value| *value > 0.0 && value.is_finite());
    let kinds = [
        ("loss", Phase::Train, Span::Step),
        ("val_loss", Phase::Validation, Span::Epoch),
        ("test_loss", Phase::Test, Span::Epoch),
    ];
    let losses = kinds.into_iter().filter_map(|(name, phase, span)| {
        Some(Loss { name: name.to_owned(), phase, span, value: number(name)? })
    });
    let found = Observation {
        step: count("step"),
        total_steps: count("total_steps"),
        epoch: number("epoch").filter(|epoch| epoch.is_finite()),
        batch_seconds: positive("batch_seconds")
            .or_else(|| positive("batch_ms").map(|millis| millis / 1e3)),
        rank: count("rank").and_then(|rank| u32::try_from(rank).ok()),
        losses: losses.collect(),
        ..Observation::default()
    };
    (found != Observation::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_groups_are_read() {
        let patterns = Patterns::new([
            r"it=(?P<step>\d+)/(?P<total_steps>\d+) J=(?P<loss>\S+) (?P<batch_ms>\S+)ms",
            r"held out (?P<val_loss>\S+)(?: rank (?P<rank>\d+))?",
        ])
        .unwrap();
        let read = |line| {
            let mut draft = Draft::default();
            patterns.read(line, &mut draft).then_some(draft.found)
        };
        let found = read("it=1000/5000 J=1.5e-3 250ms").unwrap();
        assert_eq!((found.step, found.total_steps), (Some(1000), Some(5000)));
        assert_eq!((found.losses[0].value, found.batch_seconds), (1.5e-3, Some(0.25)));
        let found = read("held out nan rank 3").unwrap();
        assert!(found.losses[0].value.is_nan() && found.losses[0].phase == Phase::Validation);
        assert_eq!(found.rank, Some(3));
        assert_eq!(read("held out well"), None);
        assert_eq!(read("nothing"), None);
    }

    #[test]
    fn invalid_pattern_is_named_in_the_error() {
        for (pattern, expected) in [
            ("(?P<loss>[0-9", "expected a regular expression: unclosed character class"),
            ("(?P<los>.*)", "unknown group \"los\"; expected any of loss, val_loss"),
            ("loss: (.*)", "expected a named group"),
        ] {
            let error = Patterns::new(["(?P<loss>x)", pattern]).unwrap_err().to_string();
            assert!(error.contains(&format!("{pattern:?}")) && error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
