//! The Prometheus text of `GET /metrics`, exposition format 0.0.4.

use std::fmt::Display;
use std::time::Duration;

use paceline_wire::{Direction, Progress};

use crate::histogram::Counts;

/// Upper bounds of the batch durations in milliseconds: a small model's batch takes a millisecond,
/// a starved large one's takes minutes. Each is a bound of the finer histogram, so its count is
/// exact.
const BOUNDS: [u64; 17] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000,
    600_000,
];

/// The metrics of a job. What is not known has no sample.
pub(crate) fn render(progress: &Progress, durations: &Counts) -> String {
    let mut text = Text(String::with_capacity(4096));
    let Progress { eval, targets, .. } = progress;

    text.family("paceline_job_info", "gauge", "What the job is; always 1.");
    let mut labels = vec![
        ("job", progress.job.as_str()),
        ("loss", &eval.name),
        ("direction", direction(eval.direction)),
        ("source", &progress.source),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    labels.extend(progress.dataset.as_deref().map(|dataset| ("dataset", dataset)));
    text.sample("paceline_job_info", &labels, &1);

    text.known("paceline_loss", "gauge", "Mean of the last reported losses.", eval.value);
    text.known(
        "paceline_loss_reports_total",
        "counter",
        "Finite losses that were reported.",
        Some(eval.count),
    );
    text.durations(progress.batch_latency.sum, durations);
    let steps = Some(progress.step.unwrap_or(0));
    text.known("paceline_steps_total", "counter", "Steps that were reported.", steps);
    text.known("paceline_epoch", "gauge", "Epoch, counted from 1.", progress.epoch);

    text.family("paceline_target_loss", "gauge", "The loss that the job is asked to reach.");
    for (tier, target) in [("acceptable", targets.acceptable), ("objective", targets.objective)] {
        if let Some(target) = target {
            text.sample("paceline_target_loss", &[("tier", tier)], &target);
        }
    }
    text.known(
        "paceline_reports_dropped_total",
        "counter",
        "Reports that were lost because too many threads reported at once.",
        Some(progress.dropped),
    );
    text.known(
        "paceline_reports_rejected_total",
        "counter",
        "Reports whose loss was not a finite number.",
        Some(progress.rejected),
    );
    text.0
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Minimize => "minimize",
        Direction::Maximize => "maximize",
    }
}

/// The text so far.
struct Text(String);

impl Text {
    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// A sample of the family that was begun last.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        self.0.push_str(name);
        let mut before = "{";
        for (label, text) in labels {
            self.0.extend([before, label, "=\"", &escaped(text), "\""]);
            before = ",";
        }
        self.0.extend([if labels.is_empty() { " " } else { "} " }, &value.to_string(), "\n"]);
    }

    /// A family of one sample without labels, if its value is known.
    fn known(&mut self, name: &str, kind: &str, help: &str, value: Option<impl Display>) {
        self.family(name, kind, help);
        if let Some(value) = value {
            self.sample(name, &[], &value);
        }
    }

    /// The histogram of batch durations.
    fn durations(&mut self, sum: f64, counts: &Counts) {
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

/// A label's value: a backslash, a quote and a line's end are written with a backslash.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests;
