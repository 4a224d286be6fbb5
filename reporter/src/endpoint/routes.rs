//! What the endpoint answers to a request.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use paceline_local::is_local;
use tokio::time::timeout;

use crate::endpoint::body::Answer;
use crate::endpoint::metrics_text;
use crate::endpoint::observer::Observer;
use crate::extension::Posted;

/// Bytes of a body that are taken: some ten thousand reports.
const LARGEST_BODY: usize = 1024 * 1024;
/// A body must be here within this time.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers requests about a job.
#[derive(Debug)]
pub(crate) struct Routes {
    observer: Arc<Observer>,
    checks_host: bool,
}

/// How a page is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By GET, or by HEAD without its body.
    Read,
    /// By POST.
    Write,
}

impl Routes {
    /// With `checks_host`, a request that names a strange host is refused.
    pub(crate) fn new(observer: Arc<Observer>, checks_host: bool) -> Self {
        Self { observer, checks_host }
    }

    /// The answer to a request. A body is read only for a page that takes one.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let Some(extension) =
            self.observer.extension().filter(|_| request.method() == Method::POST)
        else {
            return self.answer_head(&request);
        };
        if request.uri().path() == "/v1/checkpoint" || self.refuses_host(&request) {
            return self.answer_head(&request);
        }
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

    fn refuses_host<B>(&self, request: &Request<B>) -> bool {
        self.checks_host && !is_local(request)
    }

    /// The answer to a request whose body does not matter. The server leaves the answer's body out
    /// for HEAD.
    fn answer_head<B>(&self, request: &Request<B>) -> Response<Answer> {
        if self.refuses_host(request) {
            return line(StatusCode::FORBIDDEN, "ask by address or as localhost");
        }
        let (way, route): (_, fn(&Observer) -> Response<Answer>) = match request.uri().path() {
            "/v1/progress" => (Way::Read, progress),
            // A listener is remembered, and so is none for HEAD.
            "/v1/events" if request.method() == Method::HEAD => (Way::Read, no_events),
            "/v1/events" => (Way::Read, events),
            "/metrics" => (Way::Read, metrics),
            "/healthz" => (Way::Read, |_| line(StatusCode::OK, "serving")),
            "/readyz" => (Way::Read, ready),
            "/v1/checkpoint" => (Way::Write, checkpoint),
            _ => return line(StatusCode::NOT_FOUND, "no such page; there is /v1/progress"),
        };
        let asked = match *request.method() {
            Method::GET | Method::HEAD => Some(Way::Read),
            Method::POST => Some(Way::Write),
            _ => None,
        };
        if asked == Some(way) { route(&self.observer) } else { refuse(way) }
    }
}

/// Reads a body that is short enough and comes soon enough.
async fn read(mut body: Incoming) -> Result<Vec<u8>, Response<Answer>> {
    let too_large = || line(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 1 MiB");
    let mut all = Vec::new();
    let whole = async {
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let broken = |_| line(StatusCode::BAD_REQUEST, "the body breaks off");
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            if all.len() + bytes.len() > LARGEST_BODY {
                return Err(too_large());
            }
            all.extend_from_slice(&bytes);
        }
        Ok(())
    };
    match timeout(BODY_PATIENCE, whole).await {
        Ok(read) => read.map(|()| all),
        Err(_) => Err(line(StatusCode::REQUEST_TIMEOUT, "the body takes too long")),
    }
}

fn progress(observer: &Observer) -> Response<Answer> {
    respond(StatusCode::OK, JSON, observer.json() + "\n")
}

fn events(observer: &Observer) -> Response<Answer> {
    let pieces = observer.listeners().add(&observer.json());
    respond(StatusCode::OK, EVENTS, Answer::Pieces(pieces))
}

fn no_events(_: &Observer) -> Response<Answer> {
    respond(StatusCode::OK, EVENTS, String::new())
}

fn metrics(observer: &Observer) -> Response<Answer> {
    let (progress, durations) = observer.read();
    respond(StatusCode::OK, METRICS, metrics_text::render(&progress, &durations))
}

fn ready(observer: &Observer) -> Response<Answer> {
    if observer.job().ledger().has_begun() {
        line(StatusCode::OK, "reporting")
    } else {
        line(StatusCode::SERVICE_UNAVAILABLE, "no report yet")
    }
}

/// The loop is only asked: what comes of it is seen in the progress.
fn checkpoint(observer: &Observer) -> Response<Answer> {
    let number = observer.job().checkpoints().ask();
    respond(StatusCode::ACCEPTED, JSON, format!("{{\"requested\":{number}}}\n"))
}

fn refuse(way: Way) -> Response<Answer> {
    let allowed = match way {
        Way::Read => "GET, HEAD",
        Way::Write => "POST",
    };
    let mut refusal = line(StatusCode::METHOD_NOT_ALLOWED, &format!("only {allowed}"));
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

fn line(status: StatusCode, text: &str) -> Response<Answer> {
    respond(status, TEXT, format!("{text}\n"))
}

fn respond(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Answer>,
) -> Response<Answer> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
