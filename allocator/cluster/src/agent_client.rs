//! The client of an agent. An agent must show a certificate that is trusted for its machine. Its
//! answers are bounded in size and time all the same.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use paceline_api::bounded;
use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::SCHEMA;
use paceline_api::token::Token;
use paceline_api::usage::BadUsage;
use paceline_node::migration::agent_actions::{AgentAction, Done};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

/// An agent answers within this time, or not at all.
const AGENT_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest accepted answer, in bytes: the status of a thousand jobs is smaller.
const MAX_ANSWER: usize = 4 << 20;
/// The path of an agent's status.
const PAGE: &str = "/v1/status";

/// How agents are reached.
#[derive(Clone, Debug, Args)]
#[group(id = "agents")]
pub struct Settings {
    /// The port that agents listen on
    #[arg(long, value_name = "PORT", default_value_t = 7224)]
    pub agent_port: u16,

    /// The file with the agents' token. Only its owner may have read permission
    #[arg(long, value_name = "FILE")]
    pub agent_token_file: PathBuf,

    /// The certificates that the agents' certificates are verified with, in PEM
    #[arg(long, value_name = "FILE")]
    pub agent_ca: PathBuf,

    /// The name in the agents' certificates [default: the name of each machine]
    #[arg(long, value_name = "NAME")]
    pub agent_name: Option<String>,
}

/// Sends requests to agents.
#[derive(Clone)]
pub struct AgentClient {
    port: u16,
    token: Token,
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

/// Why a request to an agent failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No answer, or not in time.
    #[error("cannot reach the agent at {0}: {1}")]
    Unreachable(String, String),
    /// A certificate cannot contain the machine's name.
    #[error(
        "invalid name {0:?} for a certificate: set --agent-name to the name in the agents' \
         certificates"
    )]
    Name(String),
    /// The agent refused the request.
    #[error("the agent at {place} answered with status {status}{}", hint(*.status))]
    Status {
        /// Its address.
        place: String,
        /// The status of its answer.
        status: StatusCode,
    },
    /// The answer cannot be read.
    #[error("invalid answer from the agent at {0}: {1}")]
    Answer(String, String),
    /// The agent did not carry out an action, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The agent has another version.
    #[error(
        "the agent at {0} answered with schema {1}, but this manager reads schema {SCHEMA}: run the same \
         version of Paceline on both"
    )]
    Schema(String, u32),
}

fn hint(status: StatusCode) -> &'static str {
    if status == StatusCode::UNAUTHORIZED { ": it expects another token" } else { "" }
}

/// A connection to an agent.
pub(super) struct Connection {
    place: String,
    sender: SendRequest<Empty<Bytes>>,
    _driving: AbortOnDropHandle<()>,
}

impl AgentClient {
    /// Reads the token and the certificates.
    pub fn new(settings: &Settings) -> Result<Self, BadUsage> {
        let token = Token::read("agent_token_file", &settings.agent_token_file)?;
        let wrong =
            |why: &dyn std::fmt::Display| BadUsage::file("agent_ca", &settings.agent_ca, why);
        let mut roots = RootCertStore::empty();
        let text = bounded::CERTIFICATE.read(&settings.agent_ca).map_err(|error| wrong(&error))?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&error))?;
        for certificate in certificates {
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"it contains no certificate"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = settings.agent_name.clone().map(ServerName::try_from).transpose();
        Ok(Self {
            port: settings.agent_port,
            token,
            connector: TlsConnector::from(Arc::new(config)),
            name: name.map_err(|error| BadUsage(format!("agent_name: {error}")))?,
        })
    }

    /// Connects to the agent of the machine called `name`.
    pub(super) async fn connect(&self, name: &str, address: &str) -> Result<Connection, AskError> {
        let place = format!("{address}:{}", self.port);
        let named = || ServerName::try_from(name.to_owned());
        let named = self.name.clone().map_or_else(named, Ok);
        let named = named.map_err(|_| AskError::Name(name.to_owned()))?;
        let reached = timeout(AGENT_TIMEOUT, self.reach(address, named)).await;
        match reached {
            Ok(Ok((sender, driving))) => Ok(Connection { place, sender, _driving: driving }),
            Ok(Err(error)) => Err(AskError::Unreachable(place, format!("{error:#}"))),
            Err(late) => Err(AskError::Unreachable(place, late.to_string())),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    async fn reach(
        &self,
        address: &str,
        name: ServerName<'static>,
    ) -> anyhow::Result<(SendRequest<Empty<Bytes>>, AbortOnDropHandle<()>)> {
        let stream = TcpStream::connect((address, self.port)).await?;
        let stream = self.connector.connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // The next request reports how the connection ended.
        let driving = tokio::spawn(async move { drop(connection.await) });
        Ok((sender, AbortOnDropHandle::new(driving)))
    }

    /// Asks the agent for its status.
    pub(super) async fn status(&self, connection: &mut Connection) -> Result<Snapshot, AskError> {
        let place = connection.place.clone();
        let asked = timeout(AGENT_TIMEOUT, self.ask(connection)).await;
        asked.unwrap_or_else(|late| Err(AskError::Unreachable(place, late.to_string())))
    }

    async fn ask(&self, connection: &mut Connection) -> Result<Snapshot, AskError> {
        let (status, bytes) = self.send(connection, Method::GET, PAGE).await?;
        let place = || connection.place.clone();
        if !status.is_success() {
            return Err(AskError::Status { place: place(), status });
        }
        let snapshot: Snapshot = serde_json::from_slice(&bytes)
            .map_err(|error| AskError::Answer(place(), error.to_string()))?;
        match snapshot.schema {
            SCHEMA => Ok(snapshot),
            other => Err(AskError::Schema(place(), other)),
        }
    }

    /// Has the agent act on a container or a service, without a time limit.
    pub(super) async fn order(
        &self,
        connection: &mut Connection,
        order: AgentAction,
        id: &str,
    ) -> Result<Done, AskError> {
        let (status, bytes) = self.send(connection, Method::POST, &order.path(id)).await?;
        let place = || connection.place.clone();
        let text = || String::from_utf8_lossy(&bytes).trim().to_owned();
        match status {
            StatusCode::CONFLICT => Err(AskError::Refused(text())),
            _ if status.is_success() => serde_json::from_slice(&bytes)
                .map_err(|error| AskError::Answer(place(), error.to_string())),
            _ => Err(AskError::Status { place: place(), status }),
        }
    }

    async fn send(
        &self,
        connection: &mut Connection,
        method: Method,
        path: &str,
    ) -> Result<(StatusCode, Bytes), AskError> {
        let Connection { place, sender, _driving } = connection;
        let lost = |error: hyper::Error| AskError::Unreachable(place.clone(), error.to_string());
        let strange =
            |error: &dyn std::fmt::Display| AskError::Answer(place.clone(), error.to_string());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, place.as_str())
            .header(AUTHORIZATION, self.token.bearer())
            .body(Empty::new())
            .map_err(|error| strange(&error))?;
        sender.ready().await.map_err(lost)?;
        let response = sender.send_request(request).await.map_err(lost)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        Ok((status, body.map_err(|error| strange(&error))?.to_bytes()))
    }
}

impl std::fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentClient").field("port", &self.port).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
