//! The answer to each request, at the page's address and at the control socket.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use hyper::body::Bytes;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use paceline_api::token::Token;
use paceline_local::{is_cross_site, is_local};
use paceline_node::migration::agent_actions::{AgentAction, AgentActions};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::answer::{self, JSON, METRICS, line, whole};
use super::keeper::{SnapshotCache, Snapshots};
use super::page;

/// The paths that begin with a job's name, which may contain slashes.
const OF_JOB: &str = "/v1/jobs/{*rest}";

/// The conditions for a request. Every client that reaches the server may read, or only clients
/// with a token.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The token that a request must show.
    pub(super) token: Option<Token>,
    /// Whether requests for another host name are refused.
    pub(super) checks_host: bool,
}

/// What the routes answer from.
#[derive(Debug)]
struct Source {
    snapshots: Snapshots,
    access: Access,
    /// One for each listener of events.
    places: Arc<Semaphore>,
    /// The actions that a cluster's manager may request.
    actions: Option<AgentActions>,
}

type Shared = State<Arc<Source>>;

/// The job of a query.
#[derive(Debug, Deserialize)]
struct Job {
    job: String,
}

/// The routes of every server, and `more` routes of one. There are at most `listeners` of events:
/// fewer than connections, so that listeners leave room for other requests.
pub(crate) fn router(
    snapshots: Snapshots,
    access: Access,
    listeners: usize,
    actions: Option<AgentActions>,
    more: Router,
) -> Router {
    let places = Arc::new(Semaphore::new(listeners));
    let source = Arc::new(Source { snapshots, access, places, actions });
    let routes = reads().into_iter().fold(Router::new(), |all, (path, read)| all.route(path, read));
    let routes = routes
        .method_not_allowed_fallback(answer::not_allowed)
        .fallback(get(file).post(act).fallback(answer::not_allowed))
        .with_state(Arc::clone(&source))
        .merge(more);
    // A refusal comes before all of the routes, and has none of their headers.
    Router::new().fallback_service(routes).layer(from_fn_with_state(source, check))
}

/// What is read, apart from the page's files.
fn reads() -> [(&'static str, MethodRouter<Arc<Source>>); 7] {
    [
        ("/healthz", get(async || line(StatusCode::OK, "serving"))),
        ("/readyz", get(ready)),
        ("/v1/status", get(async |State(from): Shared| whole(JSON, from.cache().status()))),
        ("/v1/events", get(events)),
        ("/v1/decisions", get(decisions)),
        (OF_JOB, get(history)),
        ("/metrics", get(async |State(from): Shared| whole(METRICS, from.cache().metrics()))),
    ]
}

/// The method and the path of each request that a server answers, as in its description.
pub fn routes() -> Vec<(&'static str, String)> {
    let documented = |path| if path == OF_JOB { "/v1/jobs/{job}/history" } else { path };
    let read = reads().map(|(path, _)| documented(path));
    let read = read.into_iter().chain(page::paths()).map(|path| ("GET", path.to_owned()));
    read.chain(AgentAction::paths().map(|path| ("POST", path))).collect()
}

impl Source {
    fn cache(&self) -> &SnapshotCache {
        &self.snapshots.cache
    }

    /// The refusal of a request without the token.
    fn refusal(&self, headers: &HeaderMap) -> Option<Response> {
        let shows = |token: &Token| token.is_shown(headers);
        (!self.access.token.as_ref().is_none_or(shows)).then(answer::unauthorized)
    }
}

/// Refuses requests for another host or from another site's page, and reading without the token.
async fn check(State(source): Shared, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // Health checks need no token.
    let needs_token = reads && !["/healthz", "/readyz"].contains(&request.uri().path());
    let refusal = if source.access.checks_host && !is_local(&request) {
        Some(line(StatusCode::FORBIDDEN, "invalid host: expected localhost or an IP address"))
    } else if is_cross_site(request.headers()) {
        Some(line(StatusCode::FORBIDDEN, "requests from pages of other sites are refused"))
    } else {
        needs_token.then(|| source.refusal(request.headers())).flatten()
    };
    let mut response = match refusal {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    answer::secure(response.headers_mut());
    response
}

async fn ready(State(source): Shared) -> Response {
    if source.cache().is_fresh() {
        line(StatusCode::OK, "ready")
    } else {
        line(StatusCode::SERVICE_UNAVAILABLE, "the jobs were not sampled yet, or not recently")
    }
}

async fn events(State(source): Shared) -> Response {
    match Arc::clone(&source.places).try_acquire_owned() {
        Ok(place) => answer::events(source.cache().events(), place),
        Err(_) => line(StatusCode::SERVICE_UNAVAILABLE, "too many listeners"),
    }
}

async fn decisions(State(source): Shared, query: Result<Query<Job>, QueryRejection>) -> Response {
    match query {
        Ok(Query(Job { job })) => found(source.cache().decisions(&job)),
        Err(_) => line(StatusCode::BAD_REQUEST, "invalid query: expected /v1/decisions?job=NAME"),
    }
}

/// The path `/v1/jobs/NAME/history`; a name may contain slashes.
async fn history(
    State(source): Shared,
    rest: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    if !uri.path().ends_with("/history") {
        return file(uri).await;
    }
    let rest = rest.ok();
    let job = rest.as_ref().and_then(|Path(rest)| rest.strip_suffix("/history"));
    found(job.and_then(|job| source.cache().history(job)))
}

fn found(json: Option<Bytes>) -> Response {
    json.map_or_else(|| line(StatusCode::NOT_FOUND, "unknown job"), |json| whole(JSON, json))
}

async fn file(uri: Uri) -> Response {
    match page::file(uri.path()) {
        Some((content_type, content)) => whole(content_type, content),
        None => line(StatusCode::NOT_FOUND, "unknown path: expected for example / or /v1/status"),
    }
}

/// Carries out an action of a cluster's manager on a container.
async fn act(State(source): Shared, uri: Uri, headers: HeaderMap) -> Response {
    let action = source.actions.as_ref().zip(AgentAction::from_path(uri.path()));
    let Some((actions, (action, id))) = action else {
        return answer::not_allowed().await;
    };
    if let Some(refusal) = source.refusal(&headers) {
        return refusal;
    }
    if source.access.token.is_none() {
        let why = "actions are refused without a token: set --token-file";
        return line(StatusCode::FORBIDDEN, why);
    }
    match actions.carry_out(action, id).await {
        Ok(done) => whole(JSON, serde_json::to_vec(&done).unwrap_or_default()),
        Err(error) => line(StatusCode::CONFLICT, &format!("{:#}", anyhow::Error::from(error))),
    }
}
