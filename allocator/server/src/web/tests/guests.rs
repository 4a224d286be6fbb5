//! Clients that are foreign, slow or many.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::client::{ANSWER_TIMEOUT, Served, wait_until};
use crate::web::Settings;

#[tokio::test]
async fn request_for_another_host_or_from_another_site_is_refused() {
    let served = Served::start().await;
    for headers in [
        "host: evil.example\r\n",
        "host: localhost\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n",
        "host: localhost\r\norigin: http://evil.example\r\n",
    ] {
        let answer = served.ask("GET /v1/status", headers).await;
        assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("vae"), "{answer}");
    }
}

#[tokio::test]
async fn methods_other_than_get_and_head_are_refused() {
    let served = Served::start().await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let headers = "host: localhost\r\ncontent-length: 2\r\n\r\n{}";
        let answer = served.ask(&format!("{method} /v1/status"), headers).await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
        assert!(answer.contains("allow: GET, HEAD"), "{answer}");
    }
    let head = served.ask("HEAD /v1/status", "host: localhost\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn endless_head_is_cut_off() {
    let served = Served::start().await;
    for flood in [format!("GET /{} HTTP/1.1\r\n", "x".repeat(100_000)), "a: b\r\n".repeat(10_000)] {
        let mut stream = served.connect().await;
        // The server may disconnect before all of it is written.
        drop(stream.write_all(b"GET / HTTP/1.1\r\n").await);
        drop(stream.write_all(flood.as_bytes()).await);
        let mut answer = Vec::new();
        drop(timeout(ANSWER_TIMEOUT, stream.read_to_end(&mut answer)).await.expect("it hangs up"));
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    served.get("/healthz").await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_until_others_end() {
    let served = Served::start().await;
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(served.connect().await);
    }
    let one_more = async {
        let mut answer = Vec::new();
        drop(served.connect().await.read_to_end(&mut answer).await);
        answer
    };
    assert!(timeout(ANSWER_TIMEOUT, one_more).await.unwrap().is_empty());
    drop(held);
    // The server may notice a moment later that they are closed.
    wait_until(async || {
        let (mut stream, mut answer) = (served.connect().await, Vec::new());
        let request = b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n";
        drop(stream.write_all(request).await);
        drop(stream.read_to_end(&mut answer).await);
        answer.starts_with(b"HTTP/1.0 200")
    })
    .await;
}

#[tokio::test]
async fn listeners_leave_room_for_other_requests() {
    let served = Served::start().await;
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..40 {
        let mut stream = served.connect().await;
        stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        timeout(ANSWER_TIMEOUT, stream.read_exact(&mut head)).await.unwrap().unwrap();
        refused += usize::from(&head == b"HTTP/1.1 503");
        held.push(stream);
    }
    assert_eq!(refused, 8);
    served.get("/v1/status").await;
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_disconnected() {
    let served = Served::start().await;
    let mut stream = served.connect().await;
    stream.write_all(b"GET / HT").await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(ANSWER_TIMEOUT, stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "it hangs up");
}

#[tokio::test]
async fn unknown_or_invalid_names_are_not_found() {
    let served = Served::start().await;
    for path in
        ["/v1/jobs/unknown/history", "/v1/jobs/%ff/history", "/v1/decisions?job=unknown", "/x"]
    {
        let answer = served.ask(&format!("GET {path}"), "host: localhost\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let whose = served.ask("GET /v1/decisions", "host: localhost\r\n").await;
    assert!(whose.starts_with("HTTP/1.1 400"), "{whose}");
}

#[tokio::test]
async fn unix_socket_serves_and_is_removed_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.sock");
    let listen = Some(format!("unix:{}", path.display()).parse().unwrap());
    let served = Served::with(Settings { listen, ..Settings::default() }).await;
    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let answer = super::client::ask(stream, "GET /v1/status", "host: proxy.example\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(served);
    wait_until(async || !path.exists()).await;
}
