//! The job's metrics for an OpenTelemetry receiver, by OTLP over HTTP.

use std::io;
use std::time::Duration;

use paceline_otlp::request::Times;
use paceline_otlp::{Exporter, SettingError, Settings};
use paceline_reporter::Meter;
use paceline_reporter::wire::Progress;
use tokio::runtime::{Builder, Runtime};
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
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { exporter, meter, runtime: Some(runtime) })
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
        let sent = runtime.block_on(async {
            let export = timeout(limit, self.exporter.export(&text, times));
            tokio::select! {
                sent = export => sent.ok(),
                () = end_of(ending), if !is_last => None,
            }
        });
        match sent {
            Some(Ok(())) => Ok(Outcome::Sent),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("timed out".to_owned()),
        }
    }
}

/// Returns some time after the job has ended.
async fn end_of(ending: &Ending) {
    while !ending.has_begun() {
        sleep(END_PERIOD).await;
    }
    sleep(LAST_TIME).await;
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
