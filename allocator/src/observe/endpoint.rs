//! Reading a job's endpoint.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use paceline_wire::{Progress, SCHEMA};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::container::Container;
use super::namespace;
use crate::labels::Endpoint;

/// A whole answer must be here within this time: it comes from the same machine.
const PATIENCE: Duration = Duration::from_millis(800);
/// A longer answer is no answer.
const LONGEST: usize = 256 * 1024;

/// A way to a job's endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its loopback, from inside its network namespace.
    Namespace {
        /// A process of the container.
        pid: u32,
        /// The port.
        port: u16,
    },
    /// An address that the engine publishes or bridges to it.
    Address(SocketAddr),
    /// A Unix socket, through the container's root.
    Unix(PathBuf),
}

/// Why an endpoint gave no progress.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nothing there to talk to, or not in time.
    #[error("no answer from {way}")]
    Unreachable {
        /// Who was asked.
        way: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Not HTTP.
    #[error("{0} does not speak HTTP")]
    Http(String, #[source] hyper::Error),
    /// HTTP, but no success.
    #[error("{0} answers GET /v1/progress with status {1}")]
    Status(String, StatusCode),
    /// The answer is too long or broke off.
    #[error("{0} sends an answer that is too long or breaks off")]
    Body(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// Not a progress report.
    #[error("{0} answers with something that is not a progress report")]
    Json(String, #[source] serde_json::Error),
    /// A progress report of another time.
    #[error("{0} answers with schema {1}, but this allocator reads schema {SCHEMA}")]
    Schema(String, u32),
}

impl EndpointError {
    /// Whether this is how an endpoint looks that is not up yet.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// The ways to a container's endpoint, best first. The network namespace comes first: it needs no
/// open port. A published port and the bridge serve those who may not enter it.
pub fn ways(proc: &Path, container: &Container, endpoint: &Endpoint) -> Vec<Way> {
    let Some(pid) = container.pid else { return Vec::new() };
    match endpoint {
        Endpoint::Unix(path) => {
            let inside = path.strip_prefix("/").unwrap_or(path);
            vec![Way::Unix(proc.join(pid.to_string()).join("root").join(inside))]
        }
        Endpoint::Port(port) => {
            let published = container.published.iter().filter(|(inside, _)| inside == port);
            let bridged = container.addresses.iter().map(|ip| SocketAddr::new(*ip, *port));
            std::iter::once(Way::Namespace { pid, port: *port })
                .chain(published.map(|(_, outside)| Way::Address(*outside)))
                .chain(bridged.map(Way::Address))
                .collect()
        }
    }
}

/// Reads the progress by the first way that answers, and says which; else the first way's error.
pub async fn read(proc: &Path, ways: &[Way]) -> Result<(usize, Progress), EndpointError> {
    let mut first = None;
    for (at, way) in ways.iter().enumerate() {
        match read_by(proc, way).await {
            Ok(progress) => return Ok((at, progress)),
            Err(error) => {
                // The better way's refusal says more, unless it was only barred.
                let barred = matches!(&error, EndpointError::Unreachable { source, .. }
                    if source.kind() == io::ErrorKind::PermissionDenied);
                if first.is_none() || !barred {
                    first.get_or_insert(error);
                }
            }
        }
    }
    Err(first.unwrap_or_else(|| EndpointError::Unreachable {
        way: "the container".to_owned(),
        source: io::Error::new(io::ErrorKind::NotFound, "it does not run"),
    }))
}

async fn read_by(proc: &Path, way: &Way) -> Result<Progress, EndpointError> {
    let name = way.to_string();
    let asked = async {
        let failed = |source| EndpointError::Unreachable { way: name.clone(), source };
        match way {
            Way::Namespace { pid, port } => {
                let stream = namespace::connect(proc, *pid, *port, PATIENCE).await;
                let stream = stream.and_then(TcpStream::from_std).map_err(failed)?;
                get(&name, stream).await
            }
            Way::Address(address) => {
                get(&name, TcpStream::connect(address).await.map_err(failed)?).await
            }
            Way::Unix(path) => get(&name, UnixStream::connect(path).await.map_err(failed)?).await,
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|late| {
        Err(EndpointError::Unreachable { way: name.clone(), source: late.into() })
    })
}

/// One request over one connection.
async fn get<S>(way: &str, stream: S) -> Result<Progress, EndpointError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let http = |error| EndpointError::Http(way.to_owned(), error);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    let request = Request::get("/v1/progress")
        .header("host", "localhost")
        .header("connection", "close")
        .body(Empty::<Bytes>::new())
        .expect("the request is made of constants");
    let asked = async {
        let response = sender.send_request(request).await.map_err(http)?;
        if response.status() != StatusCode::OK {
            return Err(EndpointError::Status(way.to_owned(), response.status()));
        }
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| EndpointError::Body(way.to_owned(), error))?.to_bytes();
        let progress: Progress = serde_json::from_slice(&body)
            .map_err(|error| EndpointError::Json(way.to_owned(), error))?;
        match progress.schema {
            SCHEMA => Ok(progress),
            other => Err(EndpointError::Schema(way.to_owned(), other)),
        }
    };
    let mut asked = std::pin::pin!(asked);
    tokio::select! {
        biased;
        answer = &mut asked => answer,
        // The connection drives the request; it may end with the last byte of the answer.
        ended = connection => match ended {
            Ok(()) => asked.await,
            Err(error) => Err(http(error)),
        },
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace { port, .. } => write!(f, "port {port} of its loopback"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
