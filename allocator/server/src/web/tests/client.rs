//! A client that sees the raw bytes of the server.

use std::sync::Arc;
use std::time::Duration;

use paceline_api::live::{DaemonChannels, pair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::example::example;
use crate::web::{Address, Settings, Web, serve};

/// The time limit for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Waits until a condition holds.
pub(super) async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(ANSWER_TIMEOUT, waiting).await.expect("the condition holds");
}

/// A server with the example's first snapshot, on a free port.
pub(super) struct Served {
    pub(super) web: Web,
    pub(super) channels: DaemonChannels,
}

impl Served {
    pub(super) async fn start() -> Self {
        Self::with(Settings { listen: Some("127.0.0.1:0".parse().unwrap()), ..Settings::default() })
            .await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let (live, channels) = pair(example(0.0));
        let web = serve(&settings, live, None).await.unwrap().expect("the page is served");
        let served = Self { web, channels };
        served.sample(1.0).await;
        served
    }

    /// Publishes a snapshot, and waits until the server has seen it.
    pub(super) async fn sample(&self, t: f64) {
        self.channels.snapshots.send_replace(Arc::new(example(t)));
        // The keeper's task runs on this same thread.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn port(&self) -> String {
        let Address::Tcp(address) = self.web.address() else { panic!("it listens on a port") };
        address.clone()
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.port()).await.unwrap()
    }

    /// Sends a request line such as `GET /metrics` and header lines, and reads the whole answer.
    pub(super) async fn ask(&self, line: &str, headers: &str) -> String {
        ask(self.connect().await, line, headers).await
    }

    /// The body of the answer at `path`.
    pub(super) async fn get(&self, path: &str) -> String {
        let answer = self.ask(&format!("GET {path}"), "host: localhost\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        body(&answer).to_owned()
    }
}

pub(super) async fn ask(
    mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin,
    line: &str,
    headers: &str,
) -> String {
    let request = format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A TLS connection may end without a close message; the answer counts all the same.
    drop(timeout(ANSWER_TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap());
    String::from_utf8(answer).unwrap()
}

/// An answer's body.
pub(super) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("the head ends").1
}
