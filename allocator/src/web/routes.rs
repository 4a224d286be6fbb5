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
use crate::cluster::{Hands, Order};
use crate::token::Token;

/// So many listen to events at once: fewer than there may be connections, so that listeners leave
/// room for everybody else.
const MOST_LISTENERS: usize = 32;

/// Answers requests.
#[derive(Debug)]
pub(super) struct Routes {
    keeper: Arc<Keeper>,
    access: Access,
    places: Arc<Semaphore>,
    /// What a cluster's manager may have done here.
    hands: Option<Hands>,
}

/// What comes of a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// This answer.
    Now(Response<Body>),
    /// That of what is done to the container of this id.
    Done(Hands, Order, String),
}

impl Answer {
    /// The answer, once all is done.
    pub(super) async fn whole(self) -> Response<Body> {
        match self {
            Self::Now(response) => response,
            Self::Done(hands, order, id) => match hands.carry_out(order, &id).await {
                Ok(done) => whole(JSON, serde_json::to_vec(&done).unwrap_or_default()),
                Err(error) => {
                    line(StatusCode::CONFLICT, &format!("{:#}", anyhow::Error::from(error)))
                }
            },
        }
    }
}

impl Routes {
    pub(super) fn new(keeper: Arc<Keeper>, access: Access, hands: Option<Hands>) -> Self {
        Self { keeper, access, places: Arc::new(Semaphore::new(MOST_LISTENERS)), hands }
    }

    /// The answer to a request, of which only the head counts; or what is to be done first.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Answer {
        let ordered = self.hands.as_ref().zip(Order::of_path(request.uri().path()));
        match ordered.filter(|_| request.method() == Method::POST) {
            Some((hands, (order, id))) => {
                match self.refusal(request).or_else(|| self.tokenless()) {
                    Some(refusal) => Answer::Now(refusal),
                    None => Answer::Done(hands.clone(), order, id.to_owned()),
                }
            }
            None => Answer::Now(self.read(request)),
        }
    }

    /// Why nobody may ask like this, as far as that does not go by the token.
    fn strange<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        if self.access.checks_host && !is_local(request) {
            return Some(line(StatusCode::FORBIDDEN, "ask for localhost or an address"));
        }
        let strangers = || line(StatusCode::FORBIDDEN, "another site's page may not ask");
        is_strangers(request.headers()).then(strangers)
    }

    /// The same, with the token.
    fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let shows = |token: &Token| token.is_shown(request.headers());
        let known = self.access.token.as_ref().is_none_or(shows);
        self.strange(request).or_else(|| (!known).then(answer::unauthorized))
    }

    /// Where everybody may read, nobody may have anything done.
    fn tokenless(&self) -> Option<Response<Body>> {
        let none = || line(StatusCode::FORBIDDEN, "without a token nothing is done for anybody");
        self.access.token.is_none().then(none)
    }

    fn read<B>(&self, request: &Request<B>) -> Response<Body> {
        if let Some(refusal) = self.strange(request) {
            return refusal;
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
        if let Some(refusal) = self.refusal(request) {
            return refusal;
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
