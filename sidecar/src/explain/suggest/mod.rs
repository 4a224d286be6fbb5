//! Suggests patterns for lines that look like reports and that no grammar reads.
//!
//! Lines that differ only in their numbers have one form. A form is a report if one of its numbers
//! behaves like a loss: it is a decimal number that changes, and its name is not that of another
//! measure. A number that grows from line to line is the step.

mod columns;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use paceline_grammar::{Detector, Patterns};
use paceline_lines::terminal::End;

use self::columns::{columns, roles};
use self::pattern::pattern;
use super::numbers::numbers;

/// A form needs so many lines.
const MIN_LINES: usize = 3;
/// The most forms that are looked at.
pub(super) const MAX_FORMS: usize = 1024;
/// The most suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// A pattern for lines of one form.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The regular expression.
    pub pattern: String,
    /// How many of the lines it reads.
    pub reads: usize,
    /// The first of them.
    pub example: String,
    /// The first and the last loss that it reads.
    pub losses: (f64, f64),
}

impl Suggestion {
    /// The option for a shell.
    pub fn option(&self) -> String {
        format!("--pattern '{}'", self.pattern.replace('\'', r"'\''"))
    }
}

/// Suggests patterns for the lines of a log, without prefixes and in their order; those that read the most
/// lines come first. Lines of several forms may need the same pattern.
pub fn suggest<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<Suggestion> {
    let mut forms = BTreeMap::<String, Vec<(usize, &str)>>::new();
    for (at, line) in lines.into_iter().enumerate() {
        let form = form(line);
        if forms.len() < MAX_FORMS || forms.contains_key(&form) {
            forms.entry(form).or_default().push((at, line));
        }
    }
    let mut patterns = BTreeMap::<String, Vec<(usize, &str)>>::new();
    for lines in forms.into_values().filter(|lines| lines.len() >= MIN_LINES) {
        let texts: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
        if let Some(pattern) = for_form(&texts) {
            patterns.entry(pattern).or_default().extend(lines);
        }
    }
    let mut suggestions: Vec<_> =
        patterns.into_iter().filter_map(|(pattern, lines)| suggestion(pattern, lines)).collect();
    suggestions.sort_by_key(|suggestion| std::cmp::Reverse(suggestion.reads));
    suggestions.truncate(MAX_SUGGESTIONS);
    suggestions
}

/// The suggestion of a pattern for these lines, each with its place in the log.
fn suggestion(pattern: String, mut lines: Vec<(usize, &str)>) -> Option<Suggestion> {
    lines.sort_unstable_by_key(|(at, _)| *at);
    let lines: Vec<&str> = lines.into_iter().map(|(_, line)| line).collect();
    let (reads, losses) = read(&pattern, &lines)?;
    Some(Suggestion { pattern, reads, example: (*lines.first()?).to_owned(), losses })
}

/// A line with a placeholder for each number.
pub(super) fn form(line: &str) -> String {
    let mut form = String::new();
    let mut after = 0;
    for number in numbers(line) {
        form.extend(line.get(after..number.start).unwrap_or_default().split_ascii_whitespace());
        form.push('\0');
        after = number.end();
    }
    form.extend(line.get(after..).unwrap_or_default().split_ascii_whitespace());
    form
}

/// The pattern for lines of one form, if they are reports.
fn for_form(lines: &[&str]) -> Option<String> {
    let first = lines.first()?;
    let columns = columns(first, lines);
    let roles = roles(first, &columns)?;
    let pattern = pattern(&columns, &roles);
    let (reads, _) = read(&pattern, lines)?;
    // A pattern that misses lines of its own form does not help.
    (reads * 10 >= lines.len() * 9).then_some(pattern)
}

/// How many of the lines a pattern reads, and the first and the last loss.
fn read(pattern: &str, lines: &[&str]) -> Option<(usize, (f64, f64))> {
    let mut detector = Detector::new(Patterns::new([pattern]).ok()?);
    let mut losses = Vec::new();
    for line in lines {
        let found = detector.read(line, End::Newline);
        losses.extend(found.and_then(|found| found.losses.first()).map(|loss| loss.value));
    }
    Some((losses.len(), (*losses.first()?, *losses.last()?)))
}
