//! What the endpoint answers to a request.

use std::sync::Arc;

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::host;
use crate::job::Job;
use crate::metrics_text;

const JSON: &str = "application/json";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers requests about a job.
#[derive(Debug)]
pub(crate) struct Routes {
    job: Arc<Job>,
    checks_host: bool,
}

impl Routes {
    /// With `checks_host`, a request that names a strange host is refused.
    pub(crate) fn new(job: Arc<Job>, checks_host: bool) -> Self {
        Self { job, checks_host }
    }

    /// The answer to a request. The server leaves the body out for HEAD.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Response<String> {
        if self.checks_host && !host::is_local(request) {
            return line(StatusCode::FORBIDDEN, "ask by address or as localhost");
        }
        let route: fn(&Job) -> Response<String> = match request.uri().path() {
            "/v1/progress" => progress,
            "/metrics" => metrics,
            "/healthz" => |_| line(StatusCode::OK, "serving"),
            "/readyz" => ready,
            _ => return line(StatusCode::NOT_FOUND, "no such page; there is /v1/progress"),
        };
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return route(&self.job);
        }
        let mut refusal = line(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        refusal
    }
}

fn progress(job: &Job) -> Response<String> {
    let (progress, _) = job.read();
    match serde_json::to_string(&progress) {
        Ok(json) => respond(StatusCode::OK, JSON, json + "\n"),
        Err(error) => line(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn metrics(job: &Job) -> Response<String> {
    let (progress, durations) = job.read();
    respond(StatusCode::OK, METRICS, metrics_text::render(&progress, &durations))
}

fn ready(job: &Job) -> Response<String> {
    if job.ledger().has_begun() {
        line(StatusCode::OK, "reporting")
    } else {
        line(StatusCode::SERVICE_UNAVAILABLE, "no report yet")
    }
}

fn line(status: StatusCode, text: &str) -> Response<String> {
    respond(status, TEXT, format!("{text}\n"))
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
