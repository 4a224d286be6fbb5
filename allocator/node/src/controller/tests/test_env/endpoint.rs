//! The endpoint of a fake job.

use std::time::Duration;

use paceline_wire::Progress;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::http::{answer, request};

/// A job's first report.
pub(in crate::controller::tests) fn progress(job: &str) -> Progress {
    let json = json!({
        "schema": 1, "job": job, "pid": 1, "instance": "one", "source": "reporter",
        "state": "running", "started_at": 0.0, "now": 0.0, "step": 1, "epoch": null,
        "total_steps": null,
        "eval": {"name": "loss", "direction": "minimize", "value": 4.0, "window": 5,
                 "updated_at": 1.0, "count": 1, "sum": 4.0, "first": 4.0, "best": 4.0,
                 "max_abs": 4.0},
        "batch_latency": {"count": 0, "sum": 0.0, "last": null, "p50": null, "p95": null,
                          "p99": null},
        "targets": {"acceptable": 1.0, "objective": null, "batch_latency": null},
        "reached": {"acceptable_at": null, "objective_at": null},
        "checkpoint": {"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                       "error": null},
        "dropped": 0, "rejected": 0});
    serde_json::from_value(json).unwrap()
}

/// Serves a job's progress and events, after the delay `late`.
pub(super) async fn serve(listener: UnixListener, said: watch::Receiver<Progress>, late: Duration) {
    tokio::time::sleep(late).await;
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut said = said.clone();
        connections.spawn(async move {
            let Some((head, _)) = request(&mut stream).await else { return };
            let text = |progress: &Progress| serde_json::to_string(progress).unwrap();
            if !head.contains("/v1/events") {
                let body = text(&said.borrow_and_update());
                drop(stream.write_all(answer(200, &body).as_bytes()).await);
                return;
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            drop(stream.write_all(head.as_bytes()).await);
            loop {
                let event = format!("data: {}\n\n", text(&said.borrow_and_update()));
                if stream.write_all(event.as_bytes()).await.is_err()
                    || said.changed().await.is_err()
                {
                    return;
                }
            }
        });
    }
}
