//! A gRPC client over a Unix socket: requests with one answer, and streams of answers.
//!
//! gRPC is HTTP/2 with five bytes before each message, so the HTTP client that is here anyway is
//! enough. One connection serves all calls, and is made again after it has failed. Every answer is
//! bounded in size and time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;

use crate::RuntimeError;

/// The longest message of a runtime, in bytes. Runtimes themselves send no longer ones.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most characters of a runtime's own error.
const MAX_ERROR: usize = 500;
/// The bytes before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// The code of a call without a failure.
const OK: i32 = 0;
/// The code for an object that does not exist.
pub(super) const NOT_FOUND: i32 = 5;
/// The code for a call that the server does not have.
pub(super) const UNIMPLEMENTED: i32 = 12;
/// The service of all calls.
const SERVICE: &str = "runtime.v1.RuntimeService";

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("cannot connect to {}", .0.display())]
    Unreachable(PathBuf, #[source] io::Error),
    #[error("{call}: the connection failed")]
    Connection { call: &'static str, source: hyper::Error },
    #[error("{call}: no answer within {} s", CALL_TIMEOUT.as_secs())]
    Silent { call: &'static str },
    #[error("{call}: the answer is longer than {} MiB", MAX_MESSAGE >> 20)]
    TooLong { call: &'static str },
    #[error("{call}: the answer is not a CRI message: {why}")]
    Garbled { call: &'static str, why: String },
    #[error("{call}: {message} (code {code})")]
    Refused { call: &'static str, code: i32, message: String },
}

impl CallError {
    /// The runtime's own code; `None` if it did not answer.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Unreachable(..)
            | Self::Connection { .. }
            | Self::Silent { .. }
            | Self::TooLong { .. }
            | Self::Garbled { .. } => None,
        }
    }
}

impl From<CallError> for RuntimeError {
    fn from(error: CallError) -> Self {
        if error.code() == Some(NOT_FOUND) {
            Self::Missing(error.into())
        } else {
            Self::Failed(error.into())
        }
    }
}

/// A client of one socket. Clones share its connection.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    socket: PathBuf,
    connection: Arc<Mutex<Option<SendRequest<Full<Bytes>>>>>,
}

impl Channel {
    /// A client of the socket at `socket`. Does not connect yet.
    pub(super) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), connection: Arc::default() }
    }

    /// Makes a call, and returns its only answer.
    pub(super) async fn call<A: Message + Default>(
        &self,
        call: &'static str,
        request: &impl Message,
    ) -> Result<A, CallError> {
        let answer = async {
            let mut answers = self.open(call, request).await?;
            let first = answers.next().await?;
            let message = first.ok_or_else(|| answers.garbled("it is empty"))?;
            // The status comes after the message, and decides.
            match answers.next::<A>().await? {
                None => Ok(message),
                Some(_) => Err(answers.garbled("there are several")),
            }
        };
        if let Ok(answer) = tokio::time::timeout(CALL_TIMEOUT, answer).await {
            return answer;
        }
        // What hangs may be this connection alone.
        self.forget();
        Err(CallError::Silent { call })
    }

    /// Makes a call whose answers come one by one.
    pub(super) async fn stream(
        &self,
        call: &'static str,
        request: &impl Message,
    ) -> Result<Answers, CallError> {
        let opened = tokio::time::timeout(CALL_TIMEOUT, self.open(call, request)).await;
        opened.unwrap_or(Err(CallError::Silent { call }))
    }

    async fn open(&self, call: &'static str, request: &impl Message) -> Result<Answers, CallError> {
        let mut sender = self.connected().await?;
        let failed = |source| CallError::Connection { call, source };
        sender.ready().await.map_err(failed)?;
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("http://localhost/{SERVICE}/{call}"))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(Full::new(framed(request)))
            .map_err(|error| CallError::Garbled { call, why: error.to_string() })?;
        let response = sender.send_request(request).await.map_err(|source| {
            self.forget();
            failed(source)
        })?;
        Answers::new(call, response)
    }

    /// The connection, made if there is none that works.
    async fn connected(&self) -> Result<SendRequest<Full<Bytes>>, CallError> {
        if let Some(sender) = self.known() {
            return Ok(sender);
        }
        let unreachable = |error| CallError::Unreachable(self.socket.clone(), error);
        let stream = UnixStream::connect(&self.socket).await.map_err(unreachable)?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(io::Error::other(error)))?;
        #[expect(clippy::disallowed_methods, reason = "it ends with the last sender")]
        drop(tokio::spawn(connection));
        *self.lock() = Some(sender.clone());
        Ok(sender)
    }

    fn known(&self) -> Option<SendRequest<Full<Bytes>>> {
        self.lock().clone().filter(|sender| !sender.is_closed())
    }

    fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SendRequest<Full<Bytes>>>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message with its prefix.
fn framed(message: &impl Message) -> Bytes {
    let encoded = message.encode_to_vec();
    let mut bytes = BytesMut::with_capacity(PREFIX + encoded.len());
    bytes.put_u8(0);
    // A request holds an id and numbers.
    bytes.put_u32(u32::try_from(encoded.len()).unwrap_or(u32::MAX));
    bytes.put_slice(&encoded);
    bytes.freeze()
}

/// The answers to one call, as they come.
#[derive(Debug)]
pub(super) struct Answers {
    call: &'static str,
    body: Incoming,
    /// What has come of the next message.
    bytes: BytesMut,
    /// The status, if it came in the place of answers.
    status: Option<HeaderMap>,
}

impl Answers {
    fn new(call: &'static str, response: Response<Incoming>) -> Result<Self, CallError> {
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let why = format!("HTTP status {}", head.status);
            return Err(CallError::Garbled { call, why });
        }
        let status = head.headers.contains_key("grpc-status").then_some(head.headers);
        Ok(Self { call, body, bytes: BytesMut::new(), status })
    }

    /// The next answer; `None` after the last one.
    pub(super) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, CallError> {
        loop {
            if let Some(message) = self.complete()? {
                let decoded = A::decode(message);
                return decoded.map(Some).map_err(|error| self.garbled(&error.to_string()));
            }
            if let Some(status) = self.status.take() {
                return self.ended(&status).map(|()| None);
            }
            let frame = match self.body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(source)) => return Err(CallError::Connection { call: self.call, source }),
                None => return Err(self.garbled("it ends without a status")),
            };
            match frame.into_data() {
                Ok(data) => self.bytes.extend_from_slice(&data),
                Err(frame) => self.status = frame.into_trailers().ok(),
            }
        }
    }

    /// The next message, if it has come whole.
    fn complete(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some((prefix, _)) = self.bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let [compressed, a, b, c, d] = *prefix;
        if compressed != 0 {
            return Err(self.garbled("it is compressed"));
        }
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > MAX_MESSAGE {
            return Err(CallError::TooLong { call: self.call });
        }
        if self.bytes.len() < PREFIX + length {
            return Ok(None);
        }
        self.bytes.advance(PREFIX);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }

    /// The status at the end of a call.
    fn ended(&self, status: &HeaderMap) -> Result<(), CallError> {
        let text = |name: &str| {
            let value = status.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
            percent_encoding::percent_decode(value).decode_utf8_lossy().into_owned()
        };
        let code = text("grpc-status").parse().map_err(|_| self.garbled("it has no status"))?;
        if code == OK {
            return Ok(());
        }
        let message = paceline_api::plain::cut(&text("grpc-message"), MAX_ERROR);
        Err(CallError::Refused { call: self.call, code, message })
    }

    fn garbled(&self, why: &str) -> CallError {
        CallError::Garbled { call: self.call, why: why.to_owned() }
    }
}
