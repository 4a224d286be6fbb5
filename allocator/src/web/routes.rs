//! What is answered to a request.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use paceline_local::{is_local, is_strangers};
use percent_encoding::percent_decode_str;
use tokio::sync::Semaphore;

use super::access::Access;
use super::answer::{self, Body, JSON, METRICS, line, whole};
use super::keeper::Keeper;
use super::page;

/// So many listen to events at once: fewer than there may be connections, so that listeners leave
/// room for everybody else.
const MOST_LISTENERS: usize = 32;

/// Answers requests.
#[derive(Debug)]
pub(super) struct Routes {
    keeper: Arc<Keeper>,
    access: Access,
    places: Arc<Semaphore>,
}

impl Routes {
    pub(super) fn new(keeper: Arc<Keeper>, access: Access) -> Self {
        Self { keeper, access, places: Arc::new(Semaphore::new(MOST_LISTENERS)) }
    }

    /// The answer to a request, of which only the head counts.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        if self.access.checks_host && !is_local(request) {
            return line(StatusCode::FORBIDDEN, "ask for localhost or an address");
        }
        if is_strangers(request.headers()) {
            return line(StatusCode::FORBIDDEN, "another site's page may not ask");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer::not_allowed();
        }
        let path = request.uri().path();
        // Whether the program lives is nobody's secret, and those who watch that have no token.
        match path {
            "/healthz" => return line(StatusCode::OK, "serving"),
            "/readyz" => return self.ready(),
            _ => {}
        }
        let shows = |token: &super::access::Token| token.is_shown(request.headers());
        if !self.access.token.as_ref().is_none_or(shows) {
            return answer::unauthorized();
        }
        match path {
            "/v1/status" => whole(JSON, self.keeper.status()),
            "/v1/events" => self.events(),
            "/v1/decisions" => self.decisions(request.uri().query().unwrap_or_default()),
            "/metrics" => whole(METRICS, self.keeper.metrics()),
            _ => self.history_or_file(path),
        }
    }

    fn history_or_file(&self, path: &str) -> Response<Body> {
        let job = path.strip_prefix("/v1/jobs/").and_then(|rest| rest.strip_suffix("/history"));
        if let Some(job) = job {
            return found(plain(job).and_then(|job| self.keeper.history(&job)));
        }
        match page::file(path) {
            Some((content_type, content)) => whole(content_type, content),
            None => line(StatusCode::NOT_FOUND, "no such page; there are / and /v1/status"),
        }
    }

    fn decisions(&self, query: &str) -> Response<Body> {
        let job = query.split('&').find_map(|pair| pair.strip_prefix("job="));
        match job {
            Some(job) => found(plain(job).and_then(|job| self.keeper.decisions(&job))),
            None => line(StatusCode::BAD_REQUEST, "whose? /v1/decisions?job=NAME"),
        }
    }

    fn events(&self) -> Response<Body> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => answer::events(self.keeper.told(), place),
            Err(_) => line(StatusCode::SERVICE_UNAVAILABLE, "too many listen already"),
        }
    }

    fn ready(&self) -> Response<Body> {
        if self.keeper.is_fresh() {
            line(StatusCode::OK, "looking")
        } else {
            line(StatusCode::SERVICE_UNAVAILABLE, "no look at the jobs, or none for a while")
        }
    }
}

/// A name as it was before it became part of an address.
fn plain(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

fn found(json: Option<Bytes>) -> Response<Body> {
    json.map_or_else(
        || line(StatusCode::NOT_FOUND, "no job of that name was seen of late"),
        |json| whole(JSON, json),
    )
}
