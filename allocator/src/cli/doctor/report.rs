//! The findings, as text of at most 100 columns and as JSON.

use std::fmt;

use paceline_api::figures::counted;
use paceline_api::plain::plain;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// The width of the text, in columns.
const WIDTH: usize = 100;
/// Where the sentences begin.
const INDENT: usize = 24;

/// How good a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// The allocator works, but something is lost.
    Warning,
    /// The allocator does not work, or limits were left behind.
    Error,
}

/// What was found out about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The thing.
    pub(super) what: &'static str,
    /// How good it is.
    pub(super) level: Level,
    /// What was found.
    pub(super) found: String,
    /// What to do.
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, level: Level::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warning(
        what: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (found, advice) = (found.into(), Some(advice.into()));
        Self { what, level: Level::Warning, found, advice }
    }

    pub(super) fn error(
        what: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { level: Level::Error, ..Self::warning(what, found, advice) }
    }
}

/// All findings.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    errors: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        Self { errors, warnings, findings }
    }

    /// Whether nothing prevents the allocator from working.
    pub(super) fn is_sound(&self) -> bool {
        self.errors == 0
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, level, found, advice } in &self.findings {
            let mut first = format!("{level:<8} {what:<14}");
            let advice = advice.iter().flat_map(|advice| lines(advice));
            for line in lines(found).into_iter().chain(advice) {
                writeln!(f, "{first:<INDENT$}{line}")?;
                first.clear();
            }
        }
        match (self.errors, self.warnings) {
            (0, 0) => writeln!(f, "nothing is wrong"),
            (errors, warnings) => {
                writeln!(f, "{}, {}", counted(errors, "error"), counted(warnings, "warning"))
            }
        }
    }
}

/// The text in lines that fit beside the indent. A longer word has a line of its own.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in plain(text).split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= WIDTH - INDENT => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_a_line_for_each_finding_and_one_for_all() {
        let report = Report::new(vec![
            Finding::ok("engine", "Docker 29 on box"),
            Finding::error("leftovers", "2 containers have limits", "run paceline restore"),
        ]);
        let expected = "ok       engine         Docker 29 on box\n\
                        error    leftovers      2 containers have limits\n\
                        \u{20}                       run paceline restore\n\
                        1 error, 0 warnings\n";
        assert_eq!(report.to_string(), expected);
        assert!(!report.is_sound());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["errors"], &json["warnings"]), (&1.into(), &0.into()));
        assert_eq!(json["findings"][1]["level"], "error");
        assert_eq!(json["findings"][0]["advice"], serde_json::Value::Null);
    }

    #[test]
    fn long_sentences_are_wrapped_and_names_cannot_control_the_terminal() {
        let found = format!("{} a\x1b[2Jb", "word ".repeat(60).trim_end());
        let report = Report::new(vec![Finding::warning("jobs", found, "look")]);
        let text = report.to_string();
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert!(text.contains("a\\u{1b}[2Jb") && text.lines().count() > 4, "{text}");
        assert_eq!(Report::new(Vec::new()).to_string(), "nothing is wrong\n");
    }
}
