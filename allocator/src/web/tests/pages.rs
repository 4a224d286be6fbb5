//! What is served, and that it agrees with what the driver shows.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::client::{PATIENCE, Served};
use super::example::{HOSTILE, example};
use crate::live::Snapshot;

#[tokio::test]
async fn the_status_is_the_latest_snapshot() {
    let served = Served::start().await;
    for t in [2.0, 3.0] {
        served.look(t).await;
        let status: Snapshot = serde_json::from_str(&served.get("/v1/status").await).unwrap();
        assert_eq!(status, example(t));
    }
}

#[tokio::test]
async fn events_begin_with_what_is_known_and_go_on() {
    let served = Served::start().await;
    let mut stream = served.connect().await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut seen = Vec::new();
    let listening = async {
        while seen.len() < 2 {
            let line = lines.next_line().await.unwrap().expect("it goes on");
            if let Some(json) = line.strip_prefix("data: ") {
                let snapshot: Snapshot = serde_json::from_str(json).unwrap();
                seen.push(snapshot.t);
                served.look(snapshot.t + 1.0).await;
            }
        }
    };
    timeout(PATIENCE, listening).await.unwrap();
    assert!(seen[0] < seen[1], "{seen:?}");
}

#[tokio::test]
async fn a_jobs_figures_over_time_are_those_that_the_snapshots_had() {
    let served = Served::start().await;
    for t in [2.0, 3.0] {
        served.look(t).await;
    }
    for name in ["vae", HOSTILE] {
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        let path = format!("/v1/jobs/{name}/history");
        let figures: Value = serde_json::from_str(&served.get(&path).await).unwrap();
        assert_eq!(figures["t"], serde_json::json!([1.0, 2.0, 3.0]));
        assert_eq!(figures["loss"], serde_json::json!([99.0, 98.0, 97.0]));
        assert_eq!(figures["limit"], serde_json::json!([0.5, 0.5, 0.5]));
    }
}

#[tokio::test]
async fn decisions_are_told_with_their_reasons() {
    let served = Served::start().await;
    let name = utf8_percent_encode(HOSTILE, NON_ALPHANUMERIC);
    let text = served.get(&format!("/v1/decisions?job={name}")).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["job"], HOSTILE);
    assert_eq!(answer["total"], 1);
    assert_eq!(answer["decisions"][0]["number"], 3);
    assert_eq!(answer["decisions"][0]["why"], "growth 0.02 is 1/2 of the sum");
}

#[tokio::test]
async fn figures_for_prometheus_are_served() {
    let served = Served::start().await;
    let text = served.get("/metrics").await;
    assert!(
        text.contains("paceline_allocator_job_decisions_total{job_name=\"vae\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("paceline_allocator_job_limit_ratio{job_name=\"vae\"} 0.5\n"), "{text}");
}

#[tokio::test]
async fn it_is_ready_once_the_driver_has_looked() {
    let (live, backstage) = crate::live::pair(Snapshot::default());
    let settings = crate::web::Settings {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..crate::web::Settings::default()
    };
    let web = crate::web::serve(&settings, live, None).await.unwrap().unwrap();
    let served = Served { web, backstage };
    assert_eq!(served.get("/healthz").await, "serving\n");
    let before = served.ask("GET /readyz", "host: localhost\r\n").await;
    assert!(before.starts_with("HTTP/1.1 503"), "{before}");
    served.look(1.0).await;
    assert_eq!(served.get("/readyz").await, "looking\n");
}

#[tokio::test]
async fn every_answer_tells_a_browser_to_keep_others_out() {
    let served = Served::start().await;
    for path in ["/", "/page.js", "/v1/status", "/metrics", "/nowhere"] {
        let answer = served.ask(&format!("GET {path}"), "host: localhost\r\n").await;
        for part in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(part), "{path}: {part}");
        }
        assert!(!answer.contains("unsafe-"), "{path}");
    }
}
