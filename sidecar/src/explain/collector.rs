//! Collects the unread lines of a whole log, of which suggestions are made.

use std::collections::BTreeMap;

use paceline_grammar::Traced;

use super::sample::is_unread_report;
use super::suggest::{MAX_FORMS, Suggestion, form, suggest};

/// The most lines of a form that are kept.
const MAX_LINES: usize = 500;

/// Unread lines with numbers, by their form: bounded, however long the log is.
#[derive(Debug, Default)]
pub struct Collector {
    /// Each line with its number.
    forms: BTreeMap<String, Vec<(u64, String)>>,
    unread: u64,
}

impl Collector {
    /// Takes what was made of the next lines.
    pub fn take(&mut self, traced: Vec<Traced>) {
        for Traced { text, .. } in traced.into_iter().filter(is_unread_report) {
            self.unread += 1;
            let form = form(&text);
            if self.forms.len() < MAX_FORMS || self.forms.contains_key(&form) {
                let lines = self.forms.entry(form).or_default();
                if lines.len() < MAX_LINES {
                    lines.push((self.unread, text));
                }
            }
        }
    }

    /// The number of unread lines with numbers.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Patterns for them.
    pub fn suggestions(&self) -> Vec<Suggestion> {
        let mut lines: Vec<_> = self.forms.values().flatten().collect();
        lines.sort_unstable_by_key(|(number, _)| *number);
        suggest(lines.into_iter().map(|(_, text)| text.as_str()))
    }
}
