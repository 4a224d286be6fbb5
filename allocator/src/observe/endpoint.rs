//! Reading a job's endpoint, which is never trusted: what it says is bounded in size and time.

mod call;
mod events;
mod feed;
mod lines;
mod unix;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::StatusCode;
use paceline_wire::{Progress, SCHEMA};
use serde::Deserialize;

use super::container::Container;
use crate::labels::Endpoint;
use call::Call;

pub use feed::{Feed, Heard, Owned, Trouble};

/// A whole answer must be here within this time: it comes from the same machine. Tests give it longer, as
/// theirs may be busy with others.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 800 });
/// A longer answer is no answer.
const LONGEST: usize = 64 * 1024;

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
    /// A Unix socket of the container.
    Unix {
        /// The container's root, seen from here.
        root: PathBuf,
        /// The socket's path, seen from inside.
        path: PathBuf,
    },
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
    #[error("{0} answers {1} with status {2}")]
    Status(String, String, StatusCode),
    /// The answer is too long or broke off.
    #[error("{0} sends an answer that is too long or breaks off")]
    Body(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// Not a progress report.
    #[error("{0} answers with something that is not a progress report")]
    Json(String, #[source] serde_json::Error),
    /// Events were asked for, and something else came.
    #[error("{0} answers GET /v1/events with something that is not a stream of events")]
    Events(String),
    /// The events have ended.
    #[error("{0} sends no more events")]
    Ended(String),
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
            let root = proc.join(pid.to_string()).join("root");
            vec![Way::Unix { root, path: path.clone() }]
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
    Err(first.unwrap_or_else(no_way))
}

fn no_way() -> EndpointError {
    EndpointError::Unreachable {
        way: "the container".to_owned(),
        source: io::Error::new(io::ErrorKind::NotFound, "it does not run"),
    }
}

async fn read_by(proc: &Path, way: &Way) -> Result<Progress, EndpointError> {
    let asked = async {
        let call = Call::get(proc, way, "/v1/progress").await?;
        parse(&way.to_string(), &call.whole().await?)
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|late| Err(call::unreachable(way, late.into())))
}

/// Asks a job to save a checkpoint, by the first way that answers: which, and the request's number.
pub async fn request_checkpoint<'a>(
    proc: &Path,
    ways: &'a [Way],
) -> Result<(&'a Way, u64), EndpointError> {
    #[derive(Deserialize)]
    struct Taken {
        requested: u64,
    }

    let (at, _) = read(proc, ways).await?;
    let way = ways.get(at).ok_or_else(no_way)?;
    let asked = async {
        let answer = Call::post(proc, way, "/v1/checkpoint").await?.whole().await?;
        let taken = serde_json::from_slice::<Taken>(&answer);
        taken.map_err(|error| EndpointError::Json(way.to_string(), error))
    };
    let taken = tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|late| Err(call::unreachable(way, late.into())))?;
    Ok((way, taken.requested))
}

/// A progress report from its JSON.
fn parse(way: &str, json: &[u8]) -> Result<Progress, EndpointError> {
    let progress: Progress =
        serde_json::from_slice(json).map_err(|error| EndpointError::Json(way.to_owned(), error))?;
    match progress.schema {
        SCHEMA => Ok(progress),
        other => Err(EndpointError::Schema(way.to_owned(), other)),
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace { port, .. } => write!(f, "port {port} of its loopback"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
