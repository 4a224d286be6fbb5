//! Reads a job's endpoint. An endpoint is never trusted: its answers are bounded in size and time.
//!
//! Each job has a feed. It follows the job's events, and reads the endpoint once a second where
//! there are none. It also reads before each regular run of the policy, and at once when targets are
//! set for the job. A new job is asked until it answers: each pause is a twentieth of the time since
//! the job was first seen. So its first report is noticed early.
//!
//! Sizes, times and bytes per time are bounded. A job whose events exceed the bound is polled
//! instead, and no other job waits for it. The path of a Unix socket is resolved inside the
//! container's root, so a link cannot lead to a socket of the machine. What a container can block runs
//! on a thread that may be lost ([`Reach`]). Names and messages of a job are cut and escaped before
//! anything else sees them (`clean`).

mod call;
mod clean;
mod events;
mod feed;
mod lines;
mod reach;
mod unix;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::StatusCode;
use paceline_api::labels::Endpoint;
use paceline_runtime::Container;
use paceline_wire::{Progress, SCHEMA};
use serde::Deserialize;

use call::Call;

pub use feed::{Feed, LatestReport, TargetOverrides, Trouble};
pub use reach::Reach;

/// How long a whole answer may take; it comes from the same machine. Tests allow more, because many
/// of them run at once.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 800 });
/// How often a job is asked for a checkpoint that does not answer in time.
const CHECKPOINT_TRIES: usize = 5;
/// The longest answer in bytes; a longer one is an error.
const MAX_ANSWER: usize = 64 * 1024;

/// A route to a job's endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The container's loopback, from inside its network namespace.
    Namespace {
        /// A process of the container.
        pid: u32,
        /// The port.
        port: u16,
    },
    /// An address that the container engine publishes for it, or its address on a bridge.
    Address(SocketAddr),
    /// A Unix socket of the container.
    Unix {
        /// The container's root folder, as seen from the host.
        root: PathBuf,
        /// The socket's path, as seen from inside the container.
        path: PathBuf,
    },
}

/// Why an endpoint's progress could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Nothing listens there, or it does not answer in time.
    #[error("no answer from {route}")]
    Unreachable {
        /// The route that was tried.
        route: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Another container listens there, or that cannot be found out.
    #[error("cannot accept an answer from {route}")]
    NotOwned {
        /// The route that was tried.
        route: String,
        /// What was found.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is not HTTP.
    #[error("{0} does not speak HTTP")]
    Http(String, #[source] hyper::Error),
    /// The answer's status is not a success.
    #[error("{0} answers {1} with status {2}")]
    Status(String, String, StatusCode),
    /// The answer is too long or incomplete.
    #[error("{0} sends an answer that is too long or incomplete")]
    Body(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer is not a progress report.
    #[error("{0} answers with something that is not a progress report")]
    Json(String, #[source] serde_json::Error),
    /// The answer to a request for events is something else.
    #[error("{0} answers GET /v1/events with something that is not a stream of events")]
    Events(String),
    /// The events have ended.
    #[error("{0} has ended its stream of events")]
    Ended(String),
    /// The progress report has an unknown schema.
    #[error("{0} answers with schema {1}, but this allocator reads schema {SCHEMA}")]
    Schema(String, u32),
}

impl EndpointError {
    /// Whether the endpoint may just not be up yet.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotOwned { .. })
    }
}

/// The routes to a container's endpoint, best first. The network namespace comes first because it
/// needs no open port. A published port and the bridge serve users who may not enter it.
pub fn routes(proc: &Path, container: &Container, endpoint: &Endpoint) -> Vec<Route> {
    let Some(pid) = container.pid else { return Vec::new() };
    match endpoint {
        Endpoint::Unix(path) => {
            let root = proc.join(pid.to_string()).join("root");
            vec![Route::Unix { root, path: path.clone() }]
        }
        Endpoint::Port(port) => {
            let published = container.published.iter().filter(|(inside, _)| inside == port);
            let bridged = container.addresses.iter().map(|ip| SocketAddr::new(*ip, *port));
            std::iter::once(Route::Namespace { pid, port: *port })
                .chain(published.map(|(_, outside)| Route::Address(*outside)))
                .chain(bridged.map(Route::Address))
                .collect()
        }
    }
}

/// Where a browser finds the page of a job that answers: at a port of the machine, if the container uses the
/// machine's network or publishes the port.
pub fn page(container: &Container, endpoint: &Endpoint) -> Option<String> {
    let Endpoint::Port(port) = endpoint else { return None };
    let address = if container.network_mode == "host" {
        SocketAddr::from((Ipv4Addr::LOCALHOST, *port))
    } else {
        container.published.iter().find(|(inside, _)| inside == port)?.1
    };
    Some(format!("http://{address}/"))
}

/// Reads the progress by the first route that answers. Returns that route's index and the progress,
/// or the error of the best route.
pub async fn read(reach: &Reach, routes: &[Route]) -> Result<(usize, Progress), EndpointError> {
    let mut first = None;
    for (at, route) in routes.iter().enumerate() {
        // Who listens at an address cannot be checked from outside of the network.
        if matches!(route, Route::Address(_)) && reach.must_be_checked() {
            continue;
        }
        match read_by(reach, route).await {
            Ok(progress) => return Ok((at, progress)),
            Err(error @ EndpointError::NotOwned { .. }) => return Err(error),
            Err(error) => {
                // The better route's error is more helpful, unless access to it was denied.
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
        route: "the container".to_owned(),
        source: io::Error::new(io::ErrorKind::NotFound, "it is not running"),
    }
}

async fn read_by(reach: &Reach, route: &Route) -> Result<Progress, EndpointError> {
    let asked = async {
        let call = Call::get(reach, route, "/v1/progress").await?;
        parse(&route.to_string(), &call.whole().await?)
    };
    tokio::time::timeout(ANSWER_TIMEOUT, asked)
        .await
        .unwrap_or_else(|late| Err(call::unreachable(route, late.into())))
}

/// Asks a job to save a checkpoint, by the first route that answers. Returns that route and the
/// request's number. A job with little CPU may answer late, so it is asked several times: each request
/// more makes it save once more at most.
pub async fn request_checkpoint<'a>(
    reach: &Reach,
    routes: &'a [Route],
) -> Result<(&'a Route, u64), EndpointError> {
    while_late(|| request_checkpoint_once(reach, routes)).await
}

/// Asks again while the answer is late, a bounded number of times.
async fn while_late<T, A>(mut ask: impl FnMut() -> A) -> Result<T, EndpointError>
where
    A: Future<Output = Result<T, EndpointError>>,
{
    for _ in 1..CHECKPOINT_TRIES {
        match ask().await {
            Err(EndpointError::Unreachable { source, .. })
                if source.kind() == io::ErrorKind::TimedOut => {}
            answer => return answer,
        }
    }
    ask().await
}

async fn request_checkpoint_once<'a>(
    reach: &Reach,
    routes: &'a [Route],
) -> Result<(&'a Route, u64), EndpointError> {
    #[derive(Deserialize)]
    struct Taken {
        requested: u64,
    }

    let (at, _) = read(reach, routes).await?;
    let route = routes.get(at).ok_or_else(no_way)?;
    let asked = async {
        let answer = Call::post(reach, route, "/v1/checkpoint").await?.whole().await?;
        let taken = serde_json::from_slice::<Taken>(&answer);
        taken.map_err(|error| EndpointError::Json(route.to_string(), error))
    };
    let taken = tokio::time::timeout(ANSWER_TIMEOUT, asked)
        .await
        .unwrap_or_else(|late| Err(call::unreachable(route, late.into())))?;
    Ok((route, taken.requested))
}

/// A progress report from its JSON.
fn parse(route: &str, json: &[u8]) -> Result<Progress, EndpointError> {
    let progress: Progress = serde_json::from_slice(json)
        .map_err(|error| EndpointError::Json(route.to_owned(), error))?;
    match progress.schema {
        SCHEMA => Ok(clean::cleaned(progress)),
        other => Err(EndpointError::Schema(route.to_owned(), other)),
    }
}

impl std::fmt::Display for Route {
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
