//! The answers agree with the controller's snapshots.

use paceline_api::live::Snapshot;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::client::{ANSWER_TIMEOUT, Served};
use super::example::{HOSTILE, example};

#[tokio::test]
async fn status_is_the_latest_snapshot() {
    let served = Served::start().await;
    for t in [2.0, 3.0] {
        served.sample(t).await;
        let status: Snapshot = serde_json::from_str(&served.get("/v1/status").await).unwrap();
        assert_eq!(status, example(t));
    }
}

#[tokio::test]
async fn events_start_with_the_current_snapshot() {
    let served = Served::start().await;
    let mut stream = served.connect().await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut seen = Vec::new();
    let listening = async {
        while seen.len() < 2 {
            let line = lines.next_line().await.unwrap().expect("the stream continues");
            if let Some(json) = line.strip_prefix("data: ") {
                let snapshot: Snapshot = serde_json::from_str(json).unwrap();
                seen.push(snapshot.t);
                served.sample(snapshot.t + 1.0).await;
            }
        }
    };
    timeout(ANSWER_TIMEOUT, listening).await.unwrap();
    assert!(seen[0] < seen[1], "{seen:?}");
}

#[tokio::test]
async fn history_has_the_figures_of_the_snapshots() {
    let served = Served::start().await;
    for t in [2.0, 3.0] {
        served.sample(t).await;
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
async fn decisions_have_their_reasons() {
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
async fn metrics_are_served() {
    let served = Served::start().await;
    let text = served.get("/metrics").await;
    assert!(
        text.contains("paceline_allocator_job_decisions_total{job_name=\"vae\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("paceline_allocator_job_limit_ratio{job_name=\"vae\"} 0.5\n"), "{text}");
}

#[tokio::test]
async fn server_is_ready_after_the_first_sample() {
    let (live, channels) = paceline_api::live::pair(Snapshot::default());
    let settings = crate::web::Settings {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..crate::web::Settings::default()
    };
    let web = crate::web::serve(&settings, live, None).await.unwrap().unwrap();
    let served = Served { web, channels };
    assert_eq!(served.get("/healthz").await, "serving\n");
    let before = served.ask("GET /readyz", "host: localhost\r\n").await;
    assert!(before.starts_with("HTTP/1.1 503"), "{before}");
    served.sample(1.0).await;
    assert_eq!(served.get("/readyz").await, "ready\n");
}

#[tokio::test]
async fn every_answer_has_the_security_headers() {
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
