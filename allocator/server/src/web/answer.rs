//! Builds answers: a body, and the headers that every answer has.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use tokio::sync::{OwnedSemaphorePermit, watch};

const EVENTS: &str = "text/event-stream";
pub(crate) const JSON: &str = "application/json";
pub(super) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The page may load only files of this server, and no other page may embed it. So a job's name
/// cannot run as a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// Adds the headers of every answer.
pub(super) fn secure(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// A complete answer.
pub(crate) fn whole(content_type: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, content_type)], body.into()).into_response()
}

/// An answer of one line.
pub(super) fn line(status: StatusCode, text: &str) -> Response {
    (status, whole(TEXT, format!("{text}\n"))).into_response()
}

/// The answer to any method but GET and HEAD.
pub(super) async fn not_allowed() -> Response {
    let refusal = line(StatusCode::METHOD_NOT_ALLOWED, "invalid method: expected GET or HEAD");
    ([(ALLOW, "GET, HEAD")], refusal).into_response()
}

/// The answer to a request without the token. A browser asks its user for it.
pub(super) fn unauthorized() -> Response {
    let why = "the token is missing or wrong: send it as a bearer token";
    let asking = "Basic realm=\"paceline\", charset=\"UTF-8\"";
    ([(WWW_AUTHENTICATE, asking)], line(StatusCode::UNAUTHORIZED, why)).into_response()
}

/// A stream of events: the current one, then each later one. A slow reader misses some, but never
/// the latest. `place` is held until the reader disconnects.
pub(super) fn events(mut updates: watch::Receiver<Bytes>, place: OwnedSemaphorePermit) -> Response {
    updates.mark_changed();
    let pieces = stream::unfold((updates, place), async |(mut updates, place)| {
        updates.changed().await.ok()?;
        let bytes = updates.borrow_and_update().clone();
        Some((Ok::<_, Infallible>(bytes), (updates, place)))
    });
    whole(EVENTS, Body::from_stream(pieces))
}
