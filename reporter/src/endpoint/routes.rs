//! Answers the endpoint's requests.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use paceline_local::{is_cross_origin, is_cross_site, is_local};
use tokio::time::timeout;

use crate::endpoint::body::Answer;
use crate::endpoint::metrics_text::{self, Format};
use crate::endpoint::observer::Observer;
#[cfg(feature = "page")]
use crate::endpoint::page;
use crate::extension::Posted;

/// The most bytes of a body: some ten thousand reports.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The time within which a body must have arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const CHECKPOINT: &str = "/v1/checkpoint";

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers requests about a job.
#[derive(Debug)]
pub(crate) struct Routes {
    observer: Arc<Observer>,
    checks_host: bool,
}

/// How a path may be requested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// By GET, or by HEAD without its body.
    Read,
    /// By POST.
    Write,
}

/// The parts of a request that its answer depends on.
#[derive(Clone, Copy)]
struct Asked<'r> {
    #[cfg_attr(not(feature = "page"), expect(dead_code, reason = "only the page asks a query"))]
    uri: &'r Uri,
    headers: &'r HeaderMap,
    is_head: bool,
}

/// Answers a request from what the observer knows.
type Route = fn(&Observer, Asked<'_>) -> Response<Answer>;

impl Routes {
    /// With `checks_host`, a request that does not name a local host is refused.
    pub(crate) fn new(observer: Arc<Observer>, checks_host: bool) -> Self {
        Self { observer, checks_host }
    }

    /// Answers a request. A body is read only for a path that takes one.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        if let Some(refusal) = self.refusal(&request) {
            return refusal;
        }
        let may_post = request.method() == Method::POST && request.uri().path() != CHECKPOINT;
        let Some(extension) = self.observer.extension().filter(|_| may_post) else {
            return self.answer_head(&request);
        };
        let (head, body) = request.into_parts();
        match read(body).await {
            Ok(body) => match extension.post(head.uri.path(), &body) {
                None => self.answer_head(&Request::from_parts(head, ())),
                Some(Posted::Taken) => respond(StatusCode::NO_CONTENT, TEXT, String::new()),
                Some(Posted::Refused(why)) => line(StatusCode::BAD_REQUEST, &why),
                Some(Posted::Busy) => line(StatusCode::TOO_MANY_REQUESTS, "try again later"),
            },
            Err(refusal) => refusal,
        }
    }

    /// The refusal of a request that a browser sends for a stranger's page. Framing the job's page is
    /// a read, which looks like a followed link.
    fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Answer>> {
        if self.checks_host && !is_local(request) {
            let why = "invalid host: expected an IP address or localhost";
            return Some(line(StatusCode::FORBIDDEN, why));
        }
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        let is_strange = if reads { is_cross_site } else { is_cross_origin };
        let why = "requests from pages of other sites are refused";
        is_strange(request.headers()).then(|| line(StatusCode::FORBIDDEN, why))
    }

    /// Answers a request whose body does not matter. For HEAD the server omits the answer's body.
    fn answer_head<B>(&self, request: &Request<B>) -> Response<Answer> {
        let Some((access, route)) = find(request.uri().path()) else {
            return line(StatusCode::NOT_FOUND, "unknown path, try /v1/progress");
        };
        let by = match *request.method() {
            Method::GET | Method::HEAD => Some(Access::Read),
            Method::POST => Some(Access::Write),
            _ => None,
        };
        let is_head = *request.method() == Method::HEAD;
        let asked = Asked { uri: request.uri(), headers: request.headers(), is_head };
        if by == Some(access) { route(&self.observer, asked) } else { refuse(access) }
    }
}

/// The paths, how each may be requested, and what answers it.
const TABLE: &[(&str, Access, Route)] = &[
    #[cfg(feature = "page")]
    ("/", Access::Read, |_, _| page::answer()),
    #[cfg(feature = "page")]
    ("/v1/history", Access::Read, history),
    ("/v1/progress", Access::Read, progress),
    ("/v1/events", Access::Read, events),
    ("/metrics", Access::Read, metrics),
    ("/healthz", Access::Read, |_, _| line(StatusCode::OK, "serving")),
    ("/readyz", Access::Read, ready),
    (CHECKPOINT, Access::Write, checkpoint),
];

/// The method and the path of each request that the endpoint answers, without those of an extension.
pub fn all_routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let method = |access: &Access| match access {
        Access::Read => "GET",
        Access::Write => "POST",
    };
    TABLE.iter().map(move |(path, access, _)| (method(access), *path))
}

fn find(path: &str) -> Option<(Access, Route)> {
    let found = TABLE.iter().find(|(name, ..)| *name == path);
    found.map(|(_, access, route)| (*access, *route))
}

/// Reads a body, within the limits of size and time.
async fn read(mut body: Incoming) -> Result<Vec<u8>, Response<Answer>> {
    let too_large = || line(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 1 MiB");
    let mut all = Vec::new();
    let whole = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let broken = |_| line(StatusCode::BAD_REQUEST, "the body is incomplete");
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            if all.len() + bytes.len() > MAX_BODY_BYTES {
                return Err(too_large());
            }
            all.extend_from_slice(&bytes);
        }
        Ok(())
    };
    match timeout(BODY_TIMEOUT, whole).await {
        Ok(read) => read.map(|()| all),
        Err(_) => Err(line(StatusCode::REQUEST_TIMEOUT, "timed out reading the body")),
    }
}

fn progress(observer: &Observer, _: Asked<'_>) -> Response<Answer> {
    respond(StatusCode::OK, JSON, observer.json() + "\n")
}

/// The past; with `after=SECONDS` only its points that end later than this Unix time.
#[cfg(feature = "page")]
fn history(observer: &Observer, asked: Asked<'_>) -> Response<Answer> {
    let query = asked.uri.query().unwrap_or_default();
    let given = query.split('&').find_map(|one| one.strip_prefix("after="));
    let Ok(after) = given.map_or(Ok(f64::NEG_INFINITY), str::parse) else {
        let given = given.unwrap_or_default();
        let allowed = "expected Unix seconds, for example after=1760000000.5";
        return line(StatusCode::BAD_REQUEST, &format!("invalid after {given:?}: {allowed}"));
    };
    respond(StatusCode::OK, JSON, observer.past(after) + "\n")
}

fn events(observer: &Observer, asked: Asked<'_>) -> Response<Answer> {
    // HEAD must not add a listener.
    if asked.is_head {
        return respond(StatusCode::OK, EVENTS, String::new());
    }
    let pieces = observer.listeners().add(&observer.json());
    respond(StatusCode::OK, EVENTS, Answer::Pieces(pieces))
}

fn metrics(observer: &Observer, asked: Asked<'_>) -> Response<Answer> {
    let (progress, durations) = observer.read();
    let format = metrics_text::wanted(asked.headers);
    let content_type = match format {
        Format::Prometheus => METRICS,
        Format::OpenMetrics => OPEN_METRICS,
    };
    let text = metrics_text::render(&progress, &durations, format);
    let mut response = respond(StatusCode::OK, content_type, text);
    set(&mut response, "vary", "accept");
    response
}

fn ready(observer: &Observer, _: Asked<'_>) -> Response<Answer> {
    if observer.job().ledger().has_begun() {
        line(StatusCode::OK, "reporting")
    } else {
        line(StatusCode::SERVICE_UNAVAILABLE, "no report yet")
    }
}

/// Asks the loop for a checkpoint. The outcome shows in the progress.
fn checkpoint(observer: &Observer, _: Asked<'_>) -> Response<Answer> {
    let number = observer.job().ask_for_checkpoint();
    respond(StatusCode::ACCEPTED, JSON, format!("{{\"requested\":{number}}}\n"))
}

fn refuse(access: Access) -> Response<Answer> {
    let allowed = match access {
        Access::Read => "GET, HEAD",
        Access::Write => "POST",
    };
    let mut refusal =
        line(StatusCode::METHOD_NOT_ALLOWED, &format!("method not allowed: use {allowed}"));
    set(&mut refusal, "allow", allowed);
    refusal
}

fn line(status: StatusCode, text: &str) -> Response<Answer> {
    respond(status, TEXT, format!("{text}\n"))
}

pub(super) fn respond(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Answer>,
) -> Response<Answer> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    set(&mut response, "content-type", content_type);
    set(&mut response, "cache-control", "no-store");
    response
}

/// Sets a header. Not inlined: each place would add some kilobytes to a job's program.
#[inline(never)]
pub(super) fn set(response: &mut Response<Answer>, name: &'static str, value: &'static str) {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
}
