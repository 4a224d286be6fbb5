//! Sends one JSON body by HTTP or HTTPS, within a time and with bounded answers.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use paceline_https::{Receiver, SendError, connector, machine_roots, send};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 4096;
/// The most characters of an answer that an error shows.
const MAX_SHOWN: usize = 200;
/// The most bytes of a file with certificates.
const MAX_CERTIFICATES: u64 = 4 << 20;
/// What answers are asked as.
const AGENT: &str = concat!("paceline-sidecar/", env!("CARGO_PKG_VERSION"));

/// The address of a receiver. Its path, query and password may be secrets, so they are never shown.
#[derive(Clone)]
pub(super) struct Url {
    is_secure: bool,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// The header `host`.
    authority: HeaderValue,
    /// The path and the query.
    target: Uri,
    authorization: Option<HeaderValue>,
}

impl Url {
    /// Reads `http://` or `https://`, with an optional `user:password@`.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "expected a URL with http:// or https:// and a host, for example \
                                https://example.com/hook";
        let uri: Uri = text.trim().parse().map_err(|_| EXPECTED)?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(EXPECTED),
        };
        let authority = uri.authority().ok_or(EXPECTED)?.as_str();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let host = uri.host().ok_or(EXPECTED)?.trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(EXPECTED);
        }
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            is_secure,
            host,
            port,
            authority: HeaderValue::from_str(place).map_err(|_| EXPECTED)?,
            target: target.parse().map_err(|_| EXPECTED)?,
            authorization: user.map(basic).transpose().map_err(|()| EXPECTED)?,
        })
    }

    /// Whether it is `https://`.
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }
}

/// Shows where it leads, without what may be secret.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority.to_str().unwrap_or_default())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}/…")
    }
}

/// The header for a user and a password, which may be percent-encoded.
fn basic(user: &str) -> Result<HeaderValue, ()> {
    let value = format!("Basic {}", STANDARD.encode(decoded(user)));
    secret(&value).ok_or(())
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// A header's value that is never shown.
pub(super) fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why a body could not be sent. Shown without secrets.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("{0}")]
    Send(#[from] SendError),
    #[error("{0}")]
    Trust(String),
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("the answer is {status}{text}")]
    Refused { status: StatusCode, text: String },
}

impl PostError {
    /// Whether another try may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Send(SendError::Connect(_) | SendError::Broken(_)) | Self::TimedOut(_) => true,
            Self::Send(SendError::Tls(_) | SendError::Host(_)) | Self::Trust(_) => false,
            Self::Refused { status, .. } => {
                status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(status)
            }
        }
    }
}

/// Sends bodies to one address.
#[derive(Debug)]
pub(super) struct Client {
    url: Url,
    /// Dropped by `shutdown_background`: a name that is still being resolved must not delay the end.
    runtime: Option<Runtime>,
}

impl Client {
    /// A client of this address.
    pub(super) fn new(url: Url) -> io::Result<Self> {
        let mut builder = Builder::new_current_thread();
        // Names are resolved on a thread. One that hangs must not gather more.
        let runtime = builder.enable_all().max_blocking_threads(1).build()?;
        Ok(Self { url, runtime: Some(runtime) })
    }

    /// The address.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a JSON body, within `time`. `authorization` replaces the user and password of the address. Redirects
    /// are not followed.
    pub(super) fn post(
        &self,
        body: String,
        authorization: Option<HeaderValue>,
        trust: &Trust<'_>,
        time: Duration,
    ) -> Result<(), PostError> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let request = self.request(body, authorization);
        let whole = async { timeout(time, self.send(request, trust)).await };
        runtime.block_on(whole).unwrap_or(Err(PostError::TimedOut(time)))
    }

    fn request(&self, body: String, authorization: Option<HeaderValue>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.url.target);
        let headers = request.headers_mut();
        headers.insert(HOST, self.url.authority.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(value) = authorization.or_else(|| self.url.authorization.clone()) {
            headers.insert(AUTHORIZATION, value);
        }
        request
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        trust: &Trust<'_>,
    ) -> Result<(), PostError> {
        let Url { host, port, is_secure, .. } = &self.url;
        let tls = if *is_secure { Some(trust.connector()?) } else { None };
        let receiver = Receiver { host, port: *port, tls: tls.as_ref() };
        let most = |status: StatusCode| if status.is_success() { 0 } else { MAX_ANSWER };
        let answer = send(receiver, request, most).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(PostError::Refused { status: answer.status, text: shown(&answer.body) })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The beginning of an answer's text, in printable characters.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(MAX_SHOWN).filter(|c| !c.is_control()).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// Which certificates are trusted.
#[derive(Debug)]
pub(super) enum Trust<'p> {
    /// Those of this file.
    File(&'p Path),
    /// Those that the machine trusts, or that `SSL_CERT_FILE` names.
    Machine,
}

impl Trust<'_> {
    /// Read for each connection: files are rotated.
    fn connector(&self) -> Result<TlsConnector, PostError> {
        let roots = match self {
            Self::File(path) => of_file(path).map_err(|error| {
                PostError::Trust(format!("cannot read certificates {}: {error}", path.display()))
            })?,
            Self::Machine => machine_roots().map_err(|error| {
                PostError::Trust(format!(
                    "found no trusted certificates: {error}; install ca-certificates or set \
                     SSL_CERT_FILE"
                ))
            })?,
        };
        connector(roots, None).map_err(|error| PostError::Trust(error.to_string()))
    }
}

/// The certificates of a file. Of many, those that cannot be used are left out.
fn of_file(path: &Path) -> io::Result<RootCertStore> {
    let text = read_bounded(path, MAX_CERTIFICATES)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(certificates) {
        (0, _) => Err(io::Error::new(io::ErrorKind::InvalidData, "it contains no certificate")),
        _ => Ok(roots),
    }
}

/// Reads a small regular file. A pipe would make the reader wait.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let described = fs::metadata(path)?;
    if !described.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if described.len() > most {
        let why = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    fs::read(path)
}
