//! Asking an agent what it knows. Whoever answers must have a certificate that is trusted for this
//! machine; what he says is bounded in size and time all the same.

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
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

use super::hands::{Done, Order};
use crate::exit::BadUsage;
use crate::live::Snapshot;
use crate::live::snapshot::SCHEMA;
use crate::token::Token;

/// An agent answers within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// No answer is longer: a machine with a thousand jobs says less.
const LONGEST: usize = 4 << 20;
/// Where an agent shows what it knows.
const PAGE: &str = "/v1/status";

/// How agents are reached.
#[derive(Clone, Debug, Args)]
#[group(id = "agents")]
pub struct Settings {
    /// The port that agents listen on
    #[arg(long, value_name = "PORT", default_value_t = 7224)]
    pub agent_port: u16,

    /// A file with the token that agents ask for; nobody but its owner may read it
    #[arg(long, value_name = "FILE")]
    pub agent_token_file: PathBuf,

    /// The certificates, in PEM, that agents' own are trusted by
    #[arg(long, value_name = "FILE")]
    pub agent_ca: PathBuf,

    /// The name that stands in the agents' certificate [default: the name of each machine]
    #[arg(long, value_name = "NAME")]
    pub agent_name: Option<String>,
}

/// Asks agents.
#[derive(Clone)]
pub struct Asker {
    port: u16,
    token: Token,
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

/// Why an agent has told nothing.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody is there, or not in time.
    #[error("no agent answers at {0}: {1}")]
    Unreachable(String, String),
    /// The machine's name cannot stand in a certificate.
    #[error("{0:?} can stand in no certificate: --agent-name names what does")]
    Name(String),
    /// Somebody is there, and refuses.
    #[error("{place} answers with status {status}{}", hint(*.status))]
    Status {
        /// Where it is.
        place: String,
        /// What it answers.
        status: StatusCode,
    },
    /// What it says makes no sense.
    #[error("{0} answers with something that is not the status of an agent: {1}")]
    Answer(String, String),
    /// It does not do what it was asked for.
    #[error("{0}")]
    Refused(String),
    /// It is of another time.
    #[error("{0} answers with schema {1}, but this manager reads schema {SCHEMA}")]
    Schema(String, u32),
}

fn hint(status: StatusCode) -> &'static str {
    if status == StatusCode::UNAUTHORIZED { ": it has another token" } else { "" }
}

/// A connection to an agent.
pub(super) struct Line {
    place: String,
    sender: SendRequest<Empty<Bytes>>,
    _driving: AbortOnDropHandle<()>,
}

impl Asker {
    /// Reads what is needed to be let in, and to know who answers.
    pub fn new(settings: &Settings) -> Result<Self, BadUsage> {
        let token = Token::read("agent_token_file", &settings.agent_token_file)?;
        let wrong =
            |why: &dyn std::fmt::Display| BadUsage::file("agent_ca", &settings.agent_ca, why);
        let mut roots = RootCertStore::empty();
        let certificates: Vec<_> = CertificateDer::pem_file_iter(&settings.agent_ca)
            .and_then(Iterator::collect)
            .map_err(|error| wrong(&error))?;
        for certificate in certificates {
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        if roots.is_empty() {
            return Err(wrong(&"there is no certificate in it"));
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
    pub(super) async fn connect(&self, name: &str, address: &str) -> Result<Line, AskError> {
        let place = format!("{address}:{}", self.port);
        let named = || ServerName::try_from(name.to_owned());
        let named = self.name.clone().map_or_else(named, Ok);
        let named = named.map_err(|_| AskError::Name(name.to_owned()))?;
        let reached = timeout(PATIENCE, self.reach(address, named)).await;
        match reached {
            Ok(Ok((sender, driving))) => Ok(Line { place, sender, _driving: driving }),
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
        // How it ends is seen by whoever asks next.
        let driving = tokio::spawn(async move { drop(connection.await) });
        Ok((sender, AbortOnDropHandle::new(driving)))
    }

    /// Asks on a connection what the agent knows.
    pub(super) async fn status(&self, line: &mut Line) -> Result<Snapshot, AskError> {
        let place = line.place.clone();
        let asked = timeout(PATIENCE, self.ask(line)).await;
        asked.unwrap_or_else(|late| Err(AskError::Unreachable(place, late.to_string())))
    }

    async fn ask(&self, line: &mut Line) -> Result<Snapshot, AskError> {
        let (status, bytes) = self.send(line, Method::GET, PAGE).await?;
        let place = || line.place.clone();
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

    /// Has something done to a container or a service, however long that takes.
    pub(super) async fn order(
        &self,
        line: &mut Line,
        order: Order,
        id: &str,
    ) -> Result<Done, AskError> {
        let (status, bytes) = self.send(line, Method::POST, &order.path(id)).await?;
        let place = || line.place.clone();
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
        line: &mut Line,
        method: Method,
        path: &str,
    ) -> Result<(StatusCode, Bytes), AskError> {
        let Line { place, sender, _driving } = line;
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
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        Ok((status, body.map_err(|error| strange(&error))?.to_bytes()))
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("port", &self.port).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
