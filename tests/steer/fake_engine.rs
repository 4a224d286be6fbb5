//! A fake engine without containers: enough for `paceline run` to start and go on.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// The engine. Dropping this ends it.
pub(crate) struct FakeEngine {
    id: String,
    /// The container whose removal it reports.
    removed: Arc<Mutex<Option<String>>>,
    _serving: JoinSet<()>,
}

impl FakeEngine {
    /// Listens on a socket. Its id is of its folder, as an engine has one allocator.
    pub(crate) fn listen(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (id, removed) = (path.parent().unwrap().display().to_string(), Arc::default());
        let mut serving = JoinSet::new();
        let (own, reported) = (id.clone(), Arc::clone(&removed));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (id, removed) = (own.clone(), Arc::clone(&reported));
                connections.spawn(async move { drop(serve(stream, &id, &removed).await) });
            }
        });
        Self { id, removed, _serving: serving }
    }

    /// The name of its folder in a state folder.
    pub(crate) fn folder(&self) -> String {
        self.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    /// Reports from now on that this container was removed.
    pub(crate) fn removed(&self, container: &str) {
        *self.removed.lock().unwrap() = Some(container.to_owned());
    }
}

/// Answers one request after the other. Requests have no body.
async fn serve(
    stream: UnixStream,
    id: &str,
    removed: &Mutex<Option<String>>,
) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(request) = lines.next_line().await? {
        while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
        let is_past = request.contains("until=");
        if request.contains("/events") && !is_past {
            writer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            return std::future::pending().await;
        }
        let of_one = request.contains("/containers/") && !request.contains("/containers/json");
        let status = if of_one { "404 Not Found" } else { "200 OK" };
        let body = if of_one {
            json!({"message": "no such container"}).to_string()
        } else if is_past {
            let event = |id| json!({"Type": "container", "Action": "destroy", "Actor": {"ID": id}});
            removed.lock().unwrap().clone().map_or_else(String::new, |id| event(id).to_string())
        } else if request.contains("/version") {
            json!({"ApiVersion": "1.43", "MinAPIVersion": "1.24"}).to_string()
        } else if request.contains("/info") {
            json!({"ID": id, "Name": "here", "NCPU": 2, "MemTotal": 1_000_000_000}).to_string()
        } else {
            json!([]).to_string()
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        let answer = format!("{head}content-length: {length}\r\n\r\n{body}");
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
