//! One request to a receiver, bounded in size and time.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use paceline_https::{Receiver, SendError, connector, machine_roots, send};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, RootCertStore};

use crate::settings::{SettingError, Settings};

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;
const AGENT: &str = concat!("paceline-otlp/", env!("CARGO_PKG_VERSION"));

/// What a receiver answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// How long it asks to wait.
    pub(crate) retry_after: Option<Duration>,
    /// Its body, unless that was too long.
    pub(crate) body: Option<Bytes>,
}

/// Sends requests to one address.
pub(crate) struct Client {
    endpoint: Uri,
    host: String,
    port: u16,
    headers: Vec<(hyper::header::HeaderName, HeaderValue)>,
    timeout: Duration,
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Reads the certificates.
    pub(crate) fn new(settings: &Settings) -> Result<Self, SettingError> {
        let Settings { endpoint, headers, timeout, .. } = settings;
        let is_https = endpoint.scheme_str() == Some("https");
        let host = endpoint.host().unwrap_or_default();
        // An IPv6 address has brackets there.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = endpoint.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = if is_https { Some(tls(settings)?) } else { None };
        let (endpoint, headers) = (endpoint.clone(), headers.clone());
        Ok(Self { endpoint, host, port, headers, timeout: *timeout, tls })
    }

    /// Sends one message.
    pub(crate) async fn post(&self, kind: &'static str, body: Bytes) -> Result<Answer, String> {
        let sent = timeout(self.timeout, self.exchange(kind, body)).await;
        sent.unwrap_or_else(|_| Err(format!("timed out after {:?}", self.timeout)))
    }

    async fn exchange(&self, kind: &'static str, body: Bytes) -> Result<Answer, String> {
        let receiver = Receiver { host: &self.host, port: self.port, tls: self.tls.as_ref() };
        let sent = send(receiver, self.request(kind, body)?, |_| MAX_ANSWER).await;
        let answer = sent.map_err(|error| self.explain(&error))?;
        let wait = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = wait.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let body = answer.is_whole.then(|| Bytes::from(answer.body));
        Ok(Answer { status: answer.status, retry_after, body })
    }

    fn explain(&self, error: &SendError) -> String {
        let Self { host, port, .. } = self;
        match error {
            SendError::Connect(error) => format!("cannot connect to {host}:{port}: {error}"),
            SendError::Tls(error) => format!("no TLS connection to {host}:{port}: {error}"),
            SendError::Host(_) | SendError::Broken(_) => error.to_string(),
        }
    }

    fn request(&self, kind: &'static str, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = self.endpoint.path_and_query().map_or("/", |path| path.as_str());
        let host = self.endpoint.authority().map_or("", |authority| authority.as_str());
        let host = host.rsplit('@').next().unwrap_or(host);
        let mut request = Request::post(path)
            .header(HOST, host)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, kind)
            .header(CONNECTION, "close")
            .body(Full::new(body))
            .map_err(|error| format!("cannot make the request: {error}"))?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

/// Whom to trust, and as whom this client appears.
fn tls(settings: &Settings) -> Result<TlsConnector, SettingError> {
    let Some((certificate, key)) = &settings.identity else {
        let unusable = |error: Error| SettingError::NoRoots(error.to_string());
        return connector(roots(settings)?, None).map_err(unusable);
    };
    let (name, key_name) =
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY");
    let chain = certificates(name, certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| SettingError::File {
        name: key_name,
        path: key.clone(),
        cause: error.to_string(),
    })?;
    connector(roots(settings)?, Some((chain, private))).map_err(|error| SettingError::File {
        name,
        path: certificate.clone(),
        cause: error.to_string(),
    })
}

fn roots(settings: &Settings) -> Result<RootCertStore, SettingError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &settings.certificate {
        let name = "OTEL_EXPORTER_OTLP_CERTIFICATE";
        for certificate in certificates(name, path)? {
            roots.add(certificate).map_err(|error| SettingError::File {
                name,
                path: path.clone(),
                cause: error.to_string(),
            })?;
        }
        return Ok(roots);
    }
    machine_roots().map_err(|error| SettingError::NoRoots(error.to_string()))
}

fn certificates(
    name: &'static str,
    path: &std::path::Path,
) -> Result<Vec<CertificateDer<'static>>, SettingError> {
    let refuse = |cause: String| SettingError::File { name, path: path.to_owned(), cause };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| refuse(error.to_string()));
    let found = found?;
    if found.is_empty() { Err(refuse("it contains no certificate".to_owned())) } else { Ok(found) }
}
