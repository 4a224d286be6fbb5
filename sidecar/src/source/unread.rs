//! Notices a log of which nothing is read, and reports that within a minute.

use std::time::Duration;

use paceline_grammar::Patterns;
use paceline_lines::terminal::wrapping::Stream;

use crate::explain::{Sample, suggest};

/// From the first line until a log of which no loss is read is spoken of. A job may print much
/// before its first loss.
const PATIENCE: Duration = Duration::from_secs(50);
/// From then on a new sample is taken: reports rather than settings.
const LATE: Duration = Duration::from_secs(35);
/// A log with fewer lines with numbers may have nothing to read.
const MIN_LINES: usize = 20;

/// Watches a text until a loss is read from it.
#[derive(Debug)]
pub(super) struct Unread {
    patterns: Patterns,
    /// When the first bytes came.
    since: Option<Duration>,
    early: Sample,
    late: Option<Sample>,
}

impl Unread {
    /// Watches from now on.
    pub(super) fn new(patterns: Patterns) -> Self {
        Self { early: Sample::new(patterns.clone()), patterns, since: None, late: None }
    }

    /// Takes the next bytes, which came at `now`.
    pub(super) fn feed(&mut self, stream: Option<Stream>, bytes: &[u8], now: Duration) {
        let since = *self.since.get_or_insert(now);
        if now.saturating_sub(since) < LATE {
            self.early.feed(stream, bytes);
        } else {
            let fresh = || Sample::new(self.patterns.clone());
            self.late.get_or_insert_with(fresh).feed(stream, bytes);
        }
    }

    /// How long after `now` it is time to speak; `None` before the first bytes.
    pub(super) fn due_in(&self, now: Duration) -> Option<Duration> {
        self.since.map(|since| (since + PATIENCE).saturating_sub(now))
    }

    /// What to say, if enough lines were not read.
    pub(super) fn hint(&self) -> Option<String> {
        let samples = [self.late.as_ref(), Some(&self.early)];
        let sample = samples.into_iter().flatten().find(|one| one.lines().len() >= MIN_LINES)?;
        let lines = sample.lines();
        let suggestions = suggest(lines.iter().map(String::as_str));
        let advice = match suggestions.first() {
            Some(suggestion) => suggestion.option(),
            None => "`paceline-sidecar replay --explain FILE` with a copy of it, or --pattern"
                .to_owned(),
        };
        Some(format!("{} lines with numbers, none read as a loss: try {advice}", lines.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn late_lines_are_suggested_rather_than_early_ones() {
        let mut unread = Unread::new(Patterns::default());
        assert_eq!(unread.due_in(seconds(7)), None);
        for line in 0..300 {
            unread.feed(None, format!("option {line} = 0.5\n").as_bytes(), seconds(10));
        }
        assert_eq!(unread.due_in(seconds(20)), Some(seconds(40)));
        assert!(unread.hint().unwrap().starts_with("200 lines with numbers, none read as a loss"));
        for step in 0..30 {
            let line = format!("round {step} J 0.{}\n", 90 - step);
            unread.feed(None, line.as_bytes(), seconds(50));
        }
        let hint = unread.hint().unwrap();
        assert!(hint.starts_with("30 lines with numbers"), "{hint}");
        assert!(hint.contains(r"--pattern '^round\s*(?P<step>\d+)"), "{hint}");
        assert_eq!(unread.due_in(seconds(90)), Some(Duration::ZERO));
    }

    #[test]
    fn few_lines_cause_no_message() {
        let mut unread = Unread::new(Patterns::default());
        for line in 0..MIN_LINES - 1 {
            unread.feed(Some(Stream::Stdout), format!("x {line}.5\n").as_bytes(), seconds(1));
        }
        assert_eq!(unread.hint(), None);
    }
}
