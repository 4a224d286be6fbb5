//! Sends the metrics to an OpenTelemetry receiver, where `--otlp` asks for it.
//!
//! A task of its own sends what `/metrics` shows. A receiver that refuses or hangs delays nothing else, and
//! takes no memory: the values are cumulative, so nothing is kept for later.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_api::live::Snapshot;
use paceline_api::usage::BadUsage;
use paceline_otlp::request::Times;
use paceline_otlp::{ExportError, Exporter, Settings};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::keeper::{SnapshotCache, Snapshots};

/// The name of the service where `OTEL_SERVICE_NAME` gives no other.
const SERVICE: &str = "paceline-allocator";

/// How many messages were sent.
#[derive(Debug, Default)]
pub(super) struct ExportCounts {
    sent: AtomicU64,
    failed: AtomicU64,
}

impl ExportCounts {
    /// The messages that were taken as a whole, and the others.
    pub(super) fn read(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    fn add(&self, outcome: &Result<(), ExportError>) {
        let count = if outcome.is_ok() { &self.sent } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A receiver whose settings were checked.
#[derive(Debug)]
pub struct Export {
    exporter: Exporter,
}

/// The running task. It ends when this is dropped.
#[derive(Debug)]
pub struct Exporting {
    _task: AbortOnDropHandle<()>,
}

impl Export {
    /// Reads the standard `OTEL_…` variables. `None` if the settings do not ask for an export, or if a
    /// variable switches metrics off, which is logged.
    pub fn new(settings: &super::Settings) -> Result<Option<Self>, BadUsage> {
        if !settings.otlp {
            return Ok(None);
        }
        let refuse = |error: paceline_otlp::SettingError| BadUsage(error.to_string());
        let Some(settings) = Settings::from_env(|name| std::env::var_os(name)).map_err(refuse)?
        else {
            warn!(
                "--otlp has no effect: OTEL_SDK_DISABLED or OTEL_METRICS_EXPORTER disables metrics"
            );
            return Ok(None);
        };
        let exporter = Exporter::new(&settings, resource()).map_err(refuse)?;
        Ok(Some(Self { exporter }))
    }

    /// The files that the variables name.
    pub fn files() -> Vec<PathBuf> {
        let settings = Settings::from_env(|name| std::env::var_os(name)).ok().flatten();
        let files = settings.map(|settings| (settings.certificate, settings.identity));
        let (certificate, identity) = files.unwrap_or_default();
        certificate.into_iter().chain(identity.into_iter().flat_map(<[_; 2]>::from)).collect()
    }

    /// Sends the metrics of these snapshots from now on.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn start(self, snapshots: &Snapshots) -> Exporting {
        let (exporter, cache) = (self.exporter, Arc::clone(&snapshots.cache));
        info!(receiver = exporter.place(), "sending metrics by OTLP");
        let task = tokio::spawn(async move { run(&exporter, &cache).await });
        Exporting { _task: AbortOnDropHandle::new(task) }
    }
}

/// What identifies this allocator.
fn resource() -> Vec<(String, String)> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let instance = format!("{host}:{}", std::process::id());
    let pairs = [
        ("service.name", SERVICE.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance),
        ("host.name", host),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

async fn run(exporter: &Exporter, cache: &SnapshotCache) {
    let mut snapshots = cache.live.follow();
    // The first snapshot has no sample.
    if snapshots.changed().await.is_err() {
        return;
    }
    let mut ticks = interval(exporter.interval());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<Arc<Snapshot>> = None;
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let snapshot = cache.live.now();
        // Without a new sample, the values are those that were sent.
        if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &snapshot)) {
            continue;
        }
        let times = Times { start: snapshot.started_at, now: snapshot.now };
        let text = cache.metrics();
        let outcome = exporter.export(&String::from_utf8_lossy(&text), times).await;
        cache.exports.add(&outcome);
        let place = exporter.place();
        match (&outcome, is_failing) {
            (Err(error), false) => warn!(
                "cannot send metrics to {place}: {error}; they are sent again after each interval, and \
                 further failures are only counted"
            ),
            (Ok(()), true) => info!("metrics are sent to {place} again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        is_failing = outcome.is_err();
        last = Some(snapshot);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use paceline_api::live::pair;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::web::tests::example::example;

    fn export(address: &str) -> Export {
        let endpoint = format!("http://{address}");
        let settings = Settings::from_env(|name| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(endpoint.clone().into()),
            "OTEL_EXPORTER_OTLP_PROTOCOL" => Some("http/json".into()),
            "OTEL_METRIC_EXPORT_INTERVAL" => Some("100".into()),
            _ => None,
        });
        Export { exporter: Exporter::new(&settings.unwrap().unwrap(), resource()).unwrap() }
    }

    /// The body of the next request, which gets this answer.
    async fn next(listener: &TcpListener, status: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        loop {
            stream.read_buf(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                let body = body.to_owned();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
                return body;
            }
        }
    }

    #[tokio::test]
    async fn receiver_gets_the_families_of_metrics_and_failures_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (live, channels) = pair(Snapshot::default());
        let snapshots = Snapshots::from(live);
        let exporting = export(&listener.local_addr().unwrap().to_string()).start(&snapshots);
        let feed = async {
            for second in 1..u32::MAX {
                channels.snapshots.send_replace(Arc::new(example(f64::from(second))));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let received = async {
            next(&listener, "400 Bad Request").await;
            next(&listener, "200 OK").await;
            next(&listener, "200 OK").await
        };
        let body = tokio::select! {
            body = received => body,
            () = feed => unreachable!("it has no end"),
        };
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        let of = &json["resourceMetrics"][0];
        let name = &of["resource"]["attributes"][0];
        assert_eq!(
            (&name["key"], &name["value"]["stringValue"]),
            (&"service.name".into(), &SERVICE.into())
        );
        let metrics = of["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let names: std::collections::BTreeSet<_> =
            metrics.iter().map(|metric| metric["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, crate::web::metrics::tests::names());
        drop(exporting);
        let text = String::from_utf8(snapshots.cache.metrics().to_vec()).unwrap();
        let line = "paceline_allocator_otlp_export_failures_total 1";
        assert!(text.lines().any(|known| known == line), "{text}");
    }
}
