//! What answers are made of: a body, and the headers that every answer has.

use std::convert::Infallible;

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, watch};

pub(super) const EVENTS: &str = "text/event-stream";
pub(super) const JSON: &str = "application/json";
pub(super) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// An answer's body.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The page may load what this server has, and nothing else; it is shown in no other page; and what
/// looks like a script in a job's name is none.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// What every answer says to a browser.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// An answer with all of its body.
pub(super) fn whole(content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    respond(StatusCode::OK, content_type, Full::new(body.into()).boxed_unsync())
}

/// An answer of one line.
pub(super) fn line(status: StatusCode, text: &str) -> Response<Body> {
    respond(status, TEXT, Full::new(format!("{text}\n").into()).boxed_unsync())
}

/// Only reading is offered.
pub(super) fn not_allowed() -> Response<Body> {
    let mut refusal = line(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    refusal
}

/// A token is needed; a browser asks its user for it.
pub(super) fn unauthorized() -> Response<Body> {
    let mut refusal = line(StatusCode::UNAUTHORIZED, "the token is needed, as a bearer's");
    let asking = HeaderValue::from_static("Basic realm=\"paceline\", charset=\"UTF-8\"");
    refusal.headers_mut().insert(WWW_AUTHENTICATE, asking);
    refusal
}

/// An answer that goes on: what is told now, then whatever is told next. Who reads slowly misses
/// some, never the latest. The place is taken for as long as somebody reads.
pub(super) fn events(
    mut told: watch::Receiver<Bytes>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    told.mark_changed();
    let pieces = stream::unfold((told, place), async |(mut told, place)| {
        told.changed().await.ok()?;
        let bytes = told.borrow_and_update().clone();
        Some((Ok(Frame::data(bytes)), (told, place)))
    });
    respond(StatusCode::OK, EVENTS, StreamBody::new(pieces).boxed_unsync())
}

fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
