//! Writes the exposition format.

use std::fmt::Display;
use std::time::Duration;

use super::BOUNDS;
use crate::hot::histogram::Counts;

/// The text so far.
pub(super) struct Text(pub(super) String);

impl Text {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// Writes a sample of the last family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        self.0.push_str(name);
        let mut before = "{";
        for (label, text) in labels {
            self.0.extend([before, label, "=\"", &escaped(text), "\""]);
            before = ",";
        }
        self.0.extend([if labels.is_empty() { " " } else { "} " }, &value.to_string(), "\n"]);
    }

    /// Writes a family with one sample without labels, or with none if the value is unknown.
    pub(super) fn known(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        value: Option<impl Display>,
    ) {
        self.family(name, kind, help);
        if let Some(value) = value {
            self.sample(name, &[], &value);
        }
    }

    /// Writes a family with one sample for each state: 1 for the current one, 0 for the others.
    pub(super) fn states(&mut self, name: &str, help: &str, states: &[(&str, bool)]) {
        self.family(name, "gauge", help);
        for (state, is) in states {
            self.sample(name, &[("state", state)], &u8::from(*is));
        }
    }

    /// Writes the histogram of batch durations.
    pub(super) fn durations(&mut self, sum: f64, counts: &Counts) {
        self.family("paceline_batch_duration_seconds", "histogram", "How long a batch took.");
        let name = "paceline_batch_duration_seconds_bucket";
        for bound in BOUNDS.map(Duration::from_millis) {
            let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
            let seconds = bound.as_secs_f64().to_string();
            self.sample(name, &[("le", &seconds)], &counts.at_most(nanos));
        }
        self.sample(name, &[("le", "+Inf")], &counts.total());
        self.sample("paceline_batch_duration_seconds_sum", &[], &sum);
        self.sample("paceline_batch_duration_seconds_count", &[], &counts.total());
    }
}

/// A label's value, in which backslash, quote and line feed are escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
