//! Which request gets which answer.

use std::sync::Arc;

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use paceline_local::{is_cross_site, is_local};

use crate::address::Address;
use crate::listing;
use crate::serve::proxy::{EVENTS, JSON, Read, Refusal};
use crate::serve::reply::Reply;
use crate::watcher::Board;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
/// The list of jobs.
pub(super) const LIST: &str = include_str!("page/index.html");
/// The page of one job: a link to the reporter's.
pub(super) const JOB: &str = include_str!("page/job.html");

/// A page may load nothing but this server's JSON, and no other page may embed it. Text can never become
/// a script or an element.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// Answers requests.
#[derive(Debug)]
pub(super) struct Routes {
    board: Arc<Board>,
}

impl Routes {
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self { board }
    }

    /// Answers a request; its body is never read.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Reply> {
        if !is_local(&request) {
            return line(
                StatusCode::FORBIDDEN,
                "invalid host: expected an IP address or localhost",
            );
        }
        if is_cross_site(request.headers()) {
            return line(StatusCode::FORBIDDEN, "requests of other sites are refused");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal =
                line(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: use GET, HEAD");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let path = request.uri().path();
        match path {
            "/" => respond(StatusCode::OK, HTML, Reply::text(LIST)),
            "/healthz" => line(StatusCode::OK, "serving"),
            "/v1/jobs" => self.list().await,
            _ => match path.strip_prefix("/jobs/") {
                Some(rest) => self.job(rest, &request).await,
                None => unknown(),
            },
        }
    }

    async fn list(&self) -> Response<Reply> {
        self.board.ask().await;
        match self.board.read(listing::json) {
            Ok(json) => respond(StatusCode::OK, JSON, Reply::text(json + "\n")),
            Err(error) => line(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// Answers a request below `/jobs/`.
    async fn job<B>(&self, rest: &str, request: &Request<B>) -> Response<Reply> {
        let Some((key, path)) = rest.split_once('/') else {
            return self.redirect(rest).await;
        };
        let Some(address) = self.find(key).await else { return unknown_job() };
        if path.is_empty() {
            return respond(StatusCode::OK, HTML, Reply::text(JOB));
        }
        let read = match Read::find(path, request.uri()) {
            Ok(read) => read,
            Err(Refusal::UnknownPath) => return unknown(),
            Err(Refusal::InvalidAfter(given)) => {
                let allowed = "expected Unix seconds, for example after=1760000000.5";
                return line(
                    StatusCode::BAD_REQUEST,
                    &format!("invalid after {given:?}: {allowed}"),
                );
            }
        };
        let content_type = read.content_type();
        // HEAD must not begin to listen.
        if content_type == EVENTS && request.method() == Method::HEAD {
            return respond(StatusCode::OK, content_type, Reply::text(""));
        }
        match read.of(&address).await {
            Ok(reply) => respond(StatusCode::OK, content_type, reply),
            Err(failure) => {
                line(StatusCode::BAD_GATEWAY, &format!("cannot read {address}: {failure}"))
            }
        }
    }

    /// The relative addresses of a job's page need the slash at its end.
    async fn redirect(&self, key: &str) -> Response<Reply> {
        if self.find(key).await.is_none() {
            return unknown_job();
        }
        let mut response = line(StatusCode::PERMANENT_REDIRECT, "the page has a slash at its end");
        // A known key has only letters, digits, dashes and underscores.
        if let Ok(location) = HeaderValue::try_from(format!("/jobs/{key}/")) {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }

    /// The address of a job that was found. Others are never asked.
    async fn find(&self, key: &str) -> Option<Address> {
        let known = || self.board.read(|jobs| jobs.by_key(key).map(|job| job.address.clone()));
        if let Some(address) = known() {
            return Some(address);
        }
        // A page of a job may be opened before the list is.
        self.board.ask().await;
        known()
    }
}

fn unknown() -> Response<Reply> {
    line(StatusCode::NOT_FOUND, "unknown path, try /v1/jobs")
}

fn unknown_job() -> Response<Reply> {
    line(StatusCode::NOT_FOUND, "unknown job, try /v1/jobs")
}

fn line(status: StatusCode, text: &str) -> Response<Reply> {
    respond(status, TEXT, Reply::text(format!("{text}\n")))
}

fn respond(status: StatusCode, content_type: &'static str, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
