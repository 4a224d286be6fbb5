//! Writes the exposition format.

use std::fmt::Display;
use std::time::Duration;

use super::BOUNDS;
use crate::hot::histogram::Counts;

/// The format of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus' text, version 0.0.4.
    Prometheus,
    /// `OpenMetrics`, version 1.0.0: a counter's family has no `_total`, bounds have a decimal point, and the
    /// text has an end.
    OpenMetrics,
}

/// The text so far.
pub(super) struct Text {
    text: String,
    format: Format,
}

impl Text {
    /// An empty text.
    pub(super) fn new(format: Format) -> Self {
        Self { text: String::with_capacity(8192), format }
    }

    /// The whole text.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = match self.format {
            Format::OpenMetrics if kind == "counter" => name.strip_suffix("_total").unwrap_or(name),
            Format::OpenMetrics | Format::Prometheus => name,
        };
        self.text.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// Writes a sample of the last family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        self.text.push_str(name);
        let mut before = "{";
        for (label, text) in labels {
            self.text.extend([before, label, "=\"", &escaped(text), "\""]);
            before = ",";
        }
        self.text.extend([if labels.is_empty() { " " } else { "} " }, &value.to_string(), "\n"]);
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

    /// A bound of a histogram.
    fn bound(&self, seconds: f64) -> String {
        match self.format {
            Format::Prometheus => seconds.to_string(),
            Format::OpenMetrics => format!("{seconds:?}"),
        }
    }

    /// Writes the histogram of batch durations.
    pub(super) fn durations(&mut self, counts: &Counts) {
        self.family("paceline_batch_duration_seconds", "histogram", "How long a batch took.");
        let name = "paceline_batch_duration_seconds_bucket";
        for bound in BOUNDS.map(Duration::from_millis) {
            let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
            let seconds = self.bound(bound.as_secs_f64());
            self.sample(name, &[("le", &seconds)], &counts.at_most(nanos));
        }
        self.sample(name, &[("le", "+Inf")], &counts.total());
        self.sample("paceline_batch_duration_seconds_sum", &[], &counts.seconds);
        self.sample("paceline_batch_duration_seconds_count", &[], &counts.total());
    }
}

/// A label's value, in which backslash, quote and line feed are escaped.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
