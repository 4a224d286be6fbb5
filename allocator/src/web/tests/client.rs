//! A client that sees the server's own bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::example::example;
use crate::live::{Backstage, pair};
use crate::web::{Address, Settings, Web, serve};

/// No answer takes this long unless there is none.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for something that comes at once, unless all hangs.
pub(super) async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes to that");
}

/// A server with the example's first look, on a free port.
pub(super) struct Served {
    pub(super) web: Web,
    pub(super) backstage: Backstage,
}

impl Served {
    pub(super) async fn start() -> Self {
        Self::with(Settings { listen: Some("127.0.0.1:0".parse().unwrap()), ..Settings::default() })
            .await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let (live, backstage) = pair(example(0.0));
        let web = serve(&settings, live, None).await.unwrap().expect("something is served");
        let served = Self { web, backstage };
        served.look(1.0).await;
        served
    }

    /// The driver looks, and the server has seen it.
    pub(super) async fn look(&self, t: f64) {
        self.backstage.snapshots.send_replace(Arc::new(example(t)));
        // The keeper's task takes its turn on this same thread.
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

    /// The body of what is got at `path`.
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
    // A server that hangs up on TLS without a farewell has said all the same what it said.
    drop(timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap());
    String::from_utf8(answer).unwrap()
}

/// An answer's body.
pub(super) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("the head ends").1
}
