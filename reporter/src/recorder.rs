//! The same values in the job's own `metrics` recorder.

use metrics::{Label, Unit};
use paceline_wire::Progress;

use crate::hot::histogram::Counts;

/// Forwards a job's values a few times a second, off its hot path.
#[derive(Debug)]
pub(crate) struct Recorder {
    labels: Vec<Label>,
    /// The durations that have been forwarded.
    before: Option<Counts>,
}

impl Recorder {
    /// Describes the metrics of a job of this name.
    pub(crate) fn new(job: &str) -> Self {
        metrics::describe_gauge!("paceline_loss", "Mean of the last reported losses.");
        metrics::describe_gauge!("paceline_validation_loss", "The last loss on held-out data.");
        metrics::describe_gauge!("paceline_epoch", "Epoch, counted from 1.");
        metrics::describe_counter!("paceline_steps_total", "Steps that were made.");
        metrics::describe_counter!(
            "paceline_reports_rejected_total",
            "Reports whose loss was not a finite number."
        );
        metrics::describe_counter!(
            "paceline_reports_dropped_total",
            "Reports that were lost because too many came at once."
        );
        metrics::describe_histogram!(
            "paceline_batch_duration_seconds",
            Unit::Seconds,
            "How long a batch took."
        );
        Self { labels: vec![Label::new("job", job.to_owned())], before: None }
    }

    /// Forwards the changes.
    pub(crate) fn record(&mut self, progress: &Progress, durations: Counts) {
        let labels = || self.labels.clone();
        let gauges = [
            ("paceline_loss", progress.eval.value),
            ("paceline_validation_loss", progress.validation.map(|validation| validation.value)),
            (
                "paceline_epoch",
                progress.epoch.and_then(|epoch| u32::try_from(epoch).ok()).map(f64::from),
            ),
        ];
        for (name, value) in gauges {
            if let Some(value) = value {
                metrics::gauge!(name, labels()).set(value);
            }
        }
        let counters = [
            ("paceline_steps_total", progress.step.unwrap_or(0)),
            ("paceline_reports_rejected_total", progress.rejected),
            ("paceline_reports_dropped_total", progress.dropped),
        ];
        for (name, count) in counters {
            metrics::counter!(name, labels()).absolute(count);
        }
        let histogram = metrics::histogram!("paceline_batch_duration_seconds", labels());
        for (seconds, count) in durations.since(self.before.as_ref()) {
            histogram.record_many(seconds, usize::try_from(count).unwrap_or(usize::MAX));
        }
        self.before = Some(durations);
    }
}
