//! A stand-in for an engine that has no containers: enough for `paceline run` to begin and go on.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// The engine; it is gone when this is dropped.
pub(crate) struct StandIn {
    _serving: JoinSet<()>,
}

impl StandIn {
    /// Listens on a socket.
    pub(crate) fn listen(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(async move { drop(serve(stream).await) });
            }
        });
        Self { _serving: serving }
    }
}

/// Answers one request after the other. None has a body.
async fn serve(stream: UnixStream) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(request) = lines.next_line().await? {
        while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
        if request.contains("/events") {
            writer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            return std::future::pending().await;
        }
        let of_one = request.contains("/containers/") && !request.contains("/containers/json");
        let status = if of_one { "404 Not Found" } else { "200 OK" };
        let body = if of_one {
            json!({"message": "no such container"})
        } else if request.contains("/version") {
            json!({"ApiVersion": "1.43", "MinAPIVersion": "1.24"})
        } else if request.contains("/info") {
            json!({"ID": "stand-in", "Name": "here", "NCPU": 2, "MemTotal": 1_000_000_000})
        } else {
            json!([])
        };
        let body = body.to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        let answer = format!("{head}content-length: {length}\r\n\r\n{body}");
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
