//! The endpoint of a simulated job: its loss falls, but it does not compute.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use paceline_api::clock::unix_seconds;
use paceline_wire::Progress;
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::http::Client;

/// Reports a second.
const REPORTS: u32 = 10;
/// The first loss, and the acceptable one.
const LOSSES: (f64, f64) = (4.0, 1.0);

/// A job that reports ten times a second.
#[derive(Debug)]
pub(super) struct Job {
    progress: Progress,
    /// The factor of its loss from one report to the next.
    factor: f64,
}

impl Job {
    /// A job whose loss is acceptable after `acceptable_after` seconds.
    pub(super) fn new(name: &str, acceptable_after: f64) -> anyhow::Result<Self> {
        let (first, acceptable) = LOSSES;
        let progress = serde_json::from_value(json!({
            "schema": 1, "job": name, "pid": 7, "instance": name, "source": "reporter",
            "state": "running", "started_at": unix_seconds(), "now": unix_seconds(),
            "step": 0, "epoch": 1, "total_steps": 46900,
            "eval": {"name": "loss", "direction": "minimize", "value": null, "window": 5,
                     "updated_at": null, "count": 0, "sum": 0.0, "first": first, "best": first,
                     "max_abs": first},
            "batch_latency": {"count": 0, "sum": 0.0, "last": 0.1, "p50": 0.1, "p95": 0.11,
                              "p99": 0.12},
            "targets": {"acceptable": acceptable, "objective": null, "batch_latency": null},
            "reached": {"acceptable_at": null, "objective_at": null},
            "checkpoint": {"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                           "error": null},
            "dropped": 0, "rejected": 0
        }))?;
        let reports = acceptable_after * f64::from(REPORTS);
        Ok(Self { progress, factor: (acceptable / first).powf(1.0 / reports) })
    }

    /// Advances the training by a second.
    fn train(&mut self) {
        let Progress { eval, batch_latency, reached, targets, .. } = &mut self.progress;
        let now = unix_seconds();
        let mut loss = eval.best.unwrap_or(LOSSES.0);
        for _ in 0..REPORTS {
            loss *= self.factor;
            eval.sum += loss;
            batch_latency.sum += 0.1;
        }
        let reports = u64::from(REPORTS);
        eval.count += reports;
        batch_latency.count += reports;
        (eval.value, eval.best, eval.updated_at) = (Some(loss), Some(loss), Some(now));
        if targets.acceptable.is_some_and(|acceptable| loss <= acceptable) {
            reached.acceptable_at.get_or_insert(now);
        }
        self.progress.step = Some(eval.count);
        self.progress.now = now;
    }

    fn says(&self) -> Arc<str> {
        // Serialising cannot fail: all keys are text.
        serde_json::to_string(&self.progress).unwrap_or_default().into()
    }
}

/// Trains, and serves its progress and events. Its seconds are offset by `phase` from other jobs'.
pub(super) async fn serve(listener: UnixListener, mut job: Job, phase: Duration) {
    let (says, said) = watch::channel(job.says());
    let mut seconds = interval_at(Instant::now() + phase, Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            _ = seconds.tick() => {
                job.train();
                says.send_replace(job.says());
            }
            Ok((stream, _)) = listener.accept() => {
                clients.spawn(tell(stream, said.clone()));
            }
            Some(_) = clients.join_next() => {}
        }
    }
}

async fn tell(stream: UnixStream, mut said: watch::Receiver<Arc<str>>) -> io::Result<()> {
    let mut client = Client::new(stream);
    while let Some(request) = client.request().await? {
        let says = Arc::clone(&said.borrow_and_update());
        match request.path.as_str() {
            "/v1/progress" => client.answer(200, &says).await?,
            "/v1/events" => {
                client.begin("text/event-stream").await?;
                client.send(&format!("data: {says}\n\n")).await?;
                while said.changed().await.is_ok() {
                    let says = Arc::clone(&said.borrow_and_update());
                    client.send(&format!("data: {says}\n\n")).await?;
                }
            }
            _ => client.answer(404, "{}").await?,
        }
    }
    Ok(())
}
