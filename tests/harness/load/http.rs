//! The part of HTTP that the fake engine and endpoints need.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// Its path, without the query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Client(BufReader<UnixStream>);

impl Client {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// The next request; `None` at the end of the connection.
    pub(super) async fn request(&mut self) -> io::Result<Option<Request>> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let asked = line.split(' ').nth(1).unwrap_or_default();
        let path = asked.split('?').next().unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line).await?;
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok(Some(Request { path, body }))
    }

    /// Answers with JSON.
    pub(super) async fn answer(&mut self, status: u16, json: &str) -> io::Result<()> {
        let length = json.len();
        let answer = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{json}"
        );
        self.send(&answer).await
    }

    /// Begins an answer that lasts as long as the connection.
    pub(super) async fn begin(&mut self, content_type: &str) -> io::Result<()> {
        self.send(&format!("HTTP/1.1 200 -\r\ncontent-type: {content_type}\r\n\r\n")).await
    }

    pub(super) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes()).await
    }
}
