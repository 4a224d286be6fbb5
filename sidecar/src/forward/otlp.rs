//! The job's metrics for an OpenTelemetry receiver, by OTLP over HTTP.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use paceline_otlp::request::Times;
use paceline_otlp::{ExportError, Exporter, SettingError, Settings};
use paceline_reporter::wire::Progress;
use paceline_reporter::{Meter, runtime};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::{Ending, Item, Outcome, Takes, Target};

/// The longest time for one message with its further attempts.
const MAX_TIME: Duration = Duration::from_mins(2);
/// How often a message that is being sent looks whether the job has ended.
const END_PERIOD: Duration = Duration::from_millis(100);
/// The time that such a message still has then, so that the last one gets its turn.
const LAST_TIME: Duration = Duration::from_secs(1);

/// A receiver.
#[derive(Debug)]
pub struct Otlp {
    exporter: Exporter,
    meter: Meter,
    /// Only taken when this is dropped.
    runtime: Option<Runtime>,
    /// Whether the receiver has taken a message.
    has_sent: bool,
}

/// Why a receiver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// A variable is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The thread cannot wait for sockets.
    #[error("cannot send metrics by OTLP: {0}")]
    Runtime(#[from] io::Error),
}

impl Otlp {
    /// Sends the metrics of a job, whose name and instance `progress` has.
    pub fn new(settings: &Settings, meter: Meter, progress: &Progress) -> Result<Self, OtlpError> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let pairs = [
            ("service.name", progress.job.clone()),
            ("service.instance.id", progress.instance.clone()),
            ("host.name", host),
        ];
        let own = pairs.map(|(key, value)| (key.to_owned(), value)).into();
        let exporter = Exporter::new(settings, own)?;
        let runtime = runtime()?;
        Ok(Self { exporter, meter, runtime: Some(runtime), has_sent: false })
    }
}

impl Target for Otlp {
    fn name(&self) -> String {
        format!("otlp:{}", self.exporter.place())
    }

    fn takes(&self) -> Takes {
        Takes::Readings { period: self.exporter.interval(), spacing: Duration::ZERO }
    }

    fn send(&mut self, item: &Item, ending: &Ending) -> Result<Outcome, String> {
        let Item::Reading { progress, is_last } = item else { return Ok(Outcome::Nothing) };
        let Some(runtime) = &self.runtime else { return Ok(Outcome::Nothing) };
        let text = self.meter.metrics(progress);
        let times = Times { start: progress.started_at, now: progress.now };
        let limit = ending.remaining(MAX_TIME);
        let failure = RefCell::new(None);
        let again = |error: &ExportError| {
            let has_failed = failure.replace(Some(error.to_string())).is_some();
            // A receiver that was never there does not delay the end by all attempts.
            let is_absent = matches!(error, ExportError::Connection(_)) && !self.has_sent;
            !(*is_last && has_failed && is_absent)
        };
        let sent = runtime.block_on(async {
            let export = timeout(limit, self.exporter.export_while(&text, times, again));
            tokio::select! {
                sent = export => sent.ok(),
                () = end_of(ending, &failure), if !is_last => None,
            }
        });
        match sent {
            Some(Ok(())) => {
                self.has_sent = true;
                Ok(Outcome::Sent)
            }
            Some(Err(error)) => Err(error.to_string()),
            // The cause is that of the last attempt.
            None => Err(failure.take().unwrap_or_else(|| "timed out".to_owned())),
        }
    }
}

/// Returns some time after the job has ended: at once where an attempt has failed, since the last
/// message has all values.
async fn end_of(ending: &Ending, failure: &RefCell<Option<String>>) {
    while !ending.has_begun() {
        sleep(END_PERIOD).await;
    }
    if failure.borrow().is_none() {
        sleep(LAST_TIME).await;
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // A name that is still being resolved must not delay the end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests;
