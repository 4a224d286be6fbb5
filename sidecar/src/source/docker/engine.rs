//! The two requests of the container engine's HTTP API that reading an output needs.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;
use std::{env, io};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Names the engine's address, as for the engine's own command.
const HOST_VARIABLE: &str = "DOCKER_HOST";
/// The engine's address where no other is given.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
/// The engine answers a request within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of an answer that are read: a container's description has some thousands.
const MAX_ANSWER: usize = 4 << 20;

/// Why the engine could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    #[error(
        "invalid {HOST_VARIABLE} \"{0}\": expected unix:///PATH or tcp://HOST:PORT, for example \
         {DEFAULT_HOST}"
    )]
    Address(String),
    #[error(
        "invalid container name \"{0}\": expected letters, digits, \"_\", \".\" and \"-\", for \
         example trainer-1"
    )]
    Name(String),
    #[error("cannot reach the container engine at {address}: {cause}")]
    Connect { address: String, cause: io::Error },
    #[error("cannot ask the container engine: {0}")]
    Request(#[from] hyper::Error),
    #[error("the container engine has not answered within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the container engine answered with more than {MAX_ANSWER} bytes")]
    TooLong,
    #[error("the container engine answered {status}: {message}")]
    Refused { status: StatusCode, message: String },
    #[error(
        "the container engine answered {0}, expected 101: it does not stream this container's output"
    )]
    NoStream(StatusCode),
    #[error("cannot read the container engine's answer: {0}")]
    Answer(#[from] serde_json::Error),
}

/// What is read of a container's description.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Description {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    #[serde(default)]
    tty: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    running: Option<bool>,
    exit_code: Option<i64>,
}

impl Description {
    /// Whether it writes to a terminal.
    pub(super) fn tty(&self) -> bool {
        self.config.tty
    }

    /// Whether it ended well, if it has ended.
    pub(super) fn ended(&self) -> Option<bool> {
        (self.state.running == Some(false)).then_some(self.state.exit_code == Some(0))
    }
}

/// Where the engine listens.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Unix(PathBuf),
    Tcp(String),
}

impl Engine {
    /// The engine that `DOCKER_HOST` names, else this machine's.
    pub(super) fn from_environment() -> Result<Self, EngineError> {
        let host = env::var_os(HOST_VARIABLE).filter(|host| !host.is_empty());
        Self::new(
            host.as_ref().map(|host| host.to_string_lossy()).as_deref().unwrap_or(DEFAULT_HOST),
        )
    }

    pub(super) fn new(host: &str) -> Result<Self, EngineError> {
        let invalid = || EngineError::Address(host.to_owned());
        match host.split_once("://").ok_or_else(invalid)? {
            ("unix", path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            ("tcp" | "http", address) if !address.is_empty() => {
                Ok(Self::Tcp(address.trim_end_matches('/').to_owned()))
            }
            _ => Err(invalid()),
        }
    }

    /// A container's description.
    pub(super) async fn inspect(&self, name: &str) -> Result<Description, EngineError> {
        let request = request(Method::GET, &path(name, "json")?);
        let text = self.send(request, read).await?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// A container's output as it is written; with what it wrote before where `logs` is set.
    pub(super) async fn attach(
        &self,
        name: &str,
        logs: bool,
    ) -> Result<TokioIo<Upgraded>, EngineError> {
        let what = format!("attach?stdout=1&stderr=1&stream=1&logs={}", u8::from(logs));
        let mut request = request(Method::POST, &path(name, &what)?);
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, HeaderValue::from_static("tcp"));
        let upgrade = |answer: Response<Incoming>| async {
            match answer.status() {
                StatusCode::SWITCHING_PROTOCOLS => Ok(hyper::upgrade::on(answer).await?),
                status => Err(EngineError::NoStream(status)),
            }
        };
        Ok(TokioIo::new(self.send(request, upgrade).await?))
    }

    /// What `finish` makes of the engine's answer, over a connection of its own.
    async fn send<T, F>(
        &self,
        request: Request<String>,
        finish: impl FnOnce(Response<Incoming>) -> F,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let answer = async {
            match self {
                Self::Unix(path) => match UnixStream::connect(path).await {
                    Ok(stream) => exchange(stream, request, finish).await,
                    Err(cause) => Err(self.unreachable(cause)),
                },
                Self::Tcp(address) => match TcpStream::connect(address).await {
                    Ok(stream) => exchange(stream, request, finish).await,
                    Err(cause) => Err(self.unreachable(cause)),
                },
            }
        };
        timeout(ANSWER_TIMEOUT, answer).await.map_err(|_| EngineError::TimedOut)?
    }

    fn unreachable(&self, cause: io::Error) -> EngineError {
        let address = match self {
            Self::Unix(path) => format!("unix://{}", path.display()),
            Self::Tcp(address) => format!("tcp://{address}"),
        };
        EngineError::Connect { address, cause }
    }
}

/// Checks a container's name or id.
pub(super) fn check(name: &str) -> Result<(), EngineError> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_valid = !name.is_empty() && name.bytes().all(valid);
    if is_valid { Ok(()) } else { Err(EngineError::Name(name.to_owned())) }
}

/// A path of the API, which has a default version where none is named.
fn path(name: &str, what: &str) -> Result<String, EngineError> {
    check(name)?;
    Ok(format!("/containers/{name}/{what}"))
}

fn request(method: Method, path: &str) -> Request<String> {
    let mut request = Request::new(String::new());
    *request.method_mut() = method;
    // A path of checked characters is a valid target.
    *request.uri_mut() = path.parse().unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_static("docker"));
    request
}

async fn exchange<S, T, F>(
    stream: S,
    request: Request<String>,
    finish: impl FnOnce(Response<Incoming>) -> F,
) -> Result<T, EngineError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Result<T, EngineError>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return finish(answer).await;
        }
        let message = message(&read(answer).await?);
        Err(EngineError::Refused { status, message })
    };
    let (mut answer, mut connection) = (pin!(answer), pin!(connection.with_upgrades()));
    tokio::select! {
        answer = &mut answer => answer,
        // A connection that ends has given its answer, or the answer is its error.
        _ = &mut connection => answer.await,
    }
}

/// A whole answer, of bounded length.
async fn read(answer: Response<Incoming>) -> Result<Vec<u8>, EngineError> {
    let mut body = answer.into_body();
    let mut whole = Vec::new();
    while let Some(bytes) = next(&mut body).await? {
        if whole.len() + bytes.len() > MAX_ANSWER {
            return Err(EngineError::TooLong);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

async fn next(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        match frame.await.transpose()?.map(Frame::into_data) {
            Some(Ok(bytes)) => return Ok(Some(bytes)),
            // Trailers say nothing of the body.
            Some(Err(_)) => {}
            None => return Ok(None),
        }
    }
}

/// The engine's own words about an error.
fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Failure {
        message: String,
    }
    serde_json::from_slice::<Failure>(body)
        .map_or_else(|_| String::from_utf8_lossy(body).trim().to_owned(), |failure| failure.message)
}
