//! Requests to endpoints, bounded in time and size: any process may listen there.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::Builder;
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use paceline_local::Stream;
use paceline_wire::{History, Progress};
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::address::Address;
use crate::clean;

/// The time for a whole answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of an answer's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most header lines of an answer.
const MAX_HEADERS: usize = 64;
/// The most bytes of a progress: some thousand ranks.
pub(crate) const MAX_PROGRESS_BYTES: usize = 256 * 1024;
/// The most bytes of a past: ten times what a job sends.
pub(crate) const MAX_HISTORY_BYTES: usize = 4 * 1024 * 1024;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no connection.
    #[error("{0}")]
    Absent(String),
    /// The answer did not arrive in time.
    #[error("no answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Silent,
    /// What answers is not the endpoint of a job.
    #[error("it is not the endpoint of a job: {0}")]
    Foreign(String),
}

/// A connection, which moves on while its answer is awaited and read. No task is left behind.
struct Connection(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Connection {
    fn poll(&mut self, context: &mut Context<'_>) {
        if self.0.as_mut().is_some_and(|open| open.as_mut().poll(context).is_ready()) {
            self.0 = None;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").finish_non_exhaustive()
    }
}

/// An answer whose body is not read yet. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    connection: Connection,
}

impl Answer {
    /// The next bytes of the body; `None` at its end.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            self.connection.poll(context);
            match ready!(Pin::new(self.response.body_mut()).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(Failure::Foreign(error.to_string()))));
                }
                // A frame of trailers has no data.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        poll_fn(|context| self.poll_next(context)).await.transpose()
    }
}

/// Sends a GET request; the answer has status 200.
pub(crate) async fn open(address: &Address, path: &str) -> Result<Answer, Failure> {
    timeout(ANSWER_TIMEOUT, ask(address, path)).await.unwrap_or(Err(Failure::Silent))
}

async fn ask(address: &Address, path: &str) -> Result<Answer, Failure> {
    let absent = |error: std::io::Error| Failure::Absent(error.to_string());
    let stream: Box<dyn Stream> = match address {
        Address::Tcp(address) => Box::new(TcpStream::connect(address).await.map_err(absent)?),
        Address::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(absent)?),
    };
    let foreign = |error: hyper::Error| Failure::Foreign(error.to_string());
    let (mut sender, connection) = Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(foreign)?;
    // An error of the connection is also one of its request.
    let mut connection = Connection(Some(Box::pin(async { drop(connection.await) })));
    // A job on loopback refuses other names of hosts.
    let request = Request::get(path).header(HOST, "localhost").body(String::new());
    let request = request.map_err(|error| Failure::Foreign(error.to_string()))?;
    let mut response = Box::pin(sender.send_request(request));
    let response = poll_fn(|context| {
        connection.poll(context);
        response.as_mut().poll(context)
    });
    let response = response.await.map_err(foreign)?;
    if response.status() != StatusCode::OK {
        return Err(Failure::Foreign(format!("it answered {}", response.status().as_u16())));
    }
    Ok(Answer { response, connection })
}

/// The whole body of an answer to a GET request.
pub(crate) async fn get(address: &Address, path: &str, most: usize) -> Result<Vec<u8>, Failure> {
    let whole = async {
        let mut answer = ask(address, path).await?;
        let mut body = Vec::new();
        while let Some(piece) = answer.next().await? {
            if body.len() + piece.len() > most {
                return Err(Failure::Foreign(format!("its answer has more than {most} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    };
    timeout(ANSWER_TIMEOUT, whole).await.unwrap_or(Err(Failure::Silent))
}

/// The progress of a job, cleaned.
pub(crate) async fn progress(address: &Address) -> Result<Progress, Failure> {
    parse(&get(address, "/v1/progress", MAX_PROGRESS_BYTES).await?)
}

fn parse(body: &[u8]) -> Result<Progress, Failure> {
    let foreign = |error: serde_json::Error| Failure::Foreign(error.to_string());
    let mut value: Value = serde_json::from_slice(body).map_err(foreign)?;
    clean::json(&mut value);
    serde_json::from_value(value).map_err(foreign)
}

/// The past of a job, by the path that asks for it.
pub(crate) async fn history(address: &Address, path: &str) -> Result<History, Failure> {
    let body = get(address, path, MAX_HISTORY_BYTES).await?;
    serde_json::from_slice(&body).map_err(|error| Failure::Foreign(error.to_string()))
}

/// The events of a job.
#[derive(Debug)]
pub(crate) struct Events {
    answer: Answer,
    /// What has arrived of the next line.
    line: Vec<u8>,
}

impl Events {
    /// Begins to listen.
    pub(crate) async fn open(address: &Address) -> Result<Self, Failure> {
        Ok(Self { answer: open(address, "/v1/events").await?, line: Vec::new() })
    }

    /// The next progress; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Progress>, Failure> {
        loop {
            while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                let line = std::mem::replace(&mut self.line, rest);
                if let Some(data) = line.strip_prefix(b"data: ") {
                    return parse(data).map(Some);
                }
            }
            let Some(piece) = self.answer.next().await? else { return Ok(None) };
            if self.line.len() + piece.len() > MAX_PROGRESS_BYTES {
                return Err(Failure::Foreign("its event is too long".to_owned()));
            }
            self.line.extend_from_slice(&piece);
        }
    }
}

#[cfg(test)]
mod tests;
