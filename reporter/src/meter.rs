//! The metrics of a job for a program that sends them elsewhere.

use std::sync::Arc;

use paceline_wire::Progress;

use crate::endpoint::{Format, render};
use crate::job::Job;

/// Renders the metrics of a job. It does not keep the endpoint open, and works after its end.
#[derive(Clone, Debug)]
pub struct Meter {
    job: Arc<Job>,
}

impl Meter {
    pub(crate) fn new(job: Arc<Job>) -> Self {
        Self { job }
    }

    /// The text of `GET /metrics`, in Prometheus' format: the counts of this moment, with the derived values
    /// of an earlier reading.
    pub fn metrics(&self, reading: &Progress) -> String {
        let (mut progress, durations) = self.job.read();
        progress.signals = reading.signals;
        progress.cpu = reading.cpu;
        progress.tensorboard.clone_from(&reading.tensorboard);
        let extension = self.job.settings().extension.as_deref();
        progress.sidecar = extension.map(crate::extension::Extension::describe);
        render(&progress, &durations, Format::Prometheus)
    }
}
