//! One request over TCP or a Unix socket, and its answer.

use std::net::SocketAddr;
use std::path::PathBuf;

use paceline_system_tests::WAIT_TIMEOUT;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    /// Lines of the head.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// Whether the body is promised but not sent.
    pub(crate) never_sent: bool,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    /// Of a stream of events, the first one.
    pub(crate) body: String,
    /// Keeps a stream of events open.
    pub(crate) stream: Box<dyn Stream>,
}

/// Both kinds of connections.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> Stream for S {}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), ..Self::default() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: &str, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::new("POST", path) }
    }

    pub(crate) fn with(mut self, header: impl Into<String>) -> Self {
        self.headers.push(header.into());
        self
    }

    pub(crate) fn without_its_body(mut self) -> Self {
        self.never_sent = true;
        self
    }

    fn text(&self) -> String {
        let Self { method, path, headers, body, never_sent } = self;
        let length = body.len() + usize::from(*never_sent);
        let mut head =
            vec![format!("{method} {path} HTTP/1.0"), format!("content-length: {length}")];
        if !headers.iter().any(|line| line.starts_with("host:")) {
            head.push("host: localhost".to_owned());
        }
        head.extend_from_slice(headers);
        head.join("\r\n") + "\r\n\r\n" + body
    }

    pub(crate) async fn send(&self, place: &Place) -> Answer {
        let answered = timeout(WAIT_TIMEOUT, self.exchange(place)).await;
        answered.unwrap_or_else(|_| panic!("{self:?} gets no answer"))
    }

    async fn exchange(&self, place: &Place) -> Answer {
        let mut stream: Box<dyn Stream> = match place {
            Place::Tcp(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            Place::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
        };
        // A server may refuse a body before it has read all of it.
        drop(stream.write_all(self.text().as_bytes()).await);
        let mut all = Vec::new();
        let mut piece = vec![0_u8; 16 * 1024];
        loop {
            let count = stream.read(&mut piece).await.unwrap_or(0);
            all.extend_from_slice(&piece[..count]);
            let text = String::from_utf8_lossy(&all);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                assert!(count > 0, "{self:?} gets no answer, but {text:?}");
                continue;
            };
            let content_type = header(head, "content-type");
            let is_stream = content_type.as_deref() == Some("text/event-stream");
            let length = header(head, "content-length").and_then(|length| length.parse().ok());
            let is_whole = length.is_some_and(|length: usize| body.len() >= length)
                || (is_stream && body.ends_with("\n\n"));
            if count == 0 || is_whole {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return Answer { status, content_type, body: body.to_owned(), stream };
            }
        }
    }
}

/// The value of a line of an answer's head.
fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(given, _)| given.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().to_owned())
}
