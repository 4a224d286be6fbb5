//! The answers to requests, for both forms.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{self, DefaultBodyLimit, FromRequest, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use hyper::StatusCode;
use hyper::body::Bytes;
use paceline_api::audit::read;
use paceline_api::live::{Command, DaemonHandle, Refusal, Who};
use tokio::time::timeout;

use super::owners;
use super::server::{MAX_LEN, READ_TIMEOUT};
use super::{Reply, Request, Tail};
use crate::web::{JSON, json, whole};

/// How long the controller may take for an order. It may first have to write other limits.
const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer of a dry run that is asked for its audit log.
const DRY_RUN_AUDIT: &str = "cannot read the audit log: a dry run writes no audit log; \
                                 start the allocator without --dry-run";

/// Answers requests.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub(super) live: DaemonHandle,
    /// The folder of the audit log.
    pub(super) audit: PathBuf,
    /// The user id of the allocator's process.
    pub(super) owner: u32,
}

/// A reply and its HTTP status.
#[derive(Debug)]
struct Answer(StatusCode, Reply);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.0, whole(JSON, json(&self.1) + "\n")).into_response()
    }
}

impl Answer {
    fn failed(status: StatusCode, why: impl Into<String>) -> Self {
        Self(status, Reply::Failed(why.into()))
    }
}

impl Requests {
    /// Answers a line of JSON.
    pub(super) async fn answer(&self, line: &[u8], who: Who) -> Reply {
        if !line.ends_with(b"\n") {
            let why = format!("invalid request: expected one line of at most {MAX_LEN} bytes");
            return Reply::Failed(why);
        }
        match serde_json::from_slice(line) {
            Ok(Request::Status) => Reply::Status(Box::new((*self.live.now()).clone())),
            Ok(Request::Audit(tail)) => self.audit(tail).await.1,
            Ok(Request::Order(command)) => self.order(command, who).await.1,
            Err(error) => Reply::Failed(format!("invalid request: {error}")),
        }
    }

    /// The routes that only the control socket has.
    pub(super) fn routes(self) -> Router {
        let router =
            table().into_iter().fold(Router::new(), |all, (_, path, route)| all.route(path, route));
        router.layer(DefaultBodyLimit::max(MAX_LEN.into())).with_state(self)
    }

    async fn order(&self, command: Command, who: Who) -> Answer {
        let privileged = [0, self.owner].contains(&who.uid);
        let of_own_job = || owners::for_own_job(command.clone(), who.uid, &self.live.now());
        let Some(command) = (if privileged { Some(command.clone()) } else { of_own_job() }) else {
            let why = format!(
                "user {} may not give this order to this allocator: only root and user {} may; `set`, \
                 `manage` and `release` are also for the owner of a job of `paceline exec`",
                who.uid, self.owner
            );
            return Answer(StatusCode::FORBIDDEN, Reply::Denied(why));
        };
        match timeout(ORDER_TIMEOUT, self.live.order(command, who)).await {
            Ok(Ok(sentence)) => Answer(StatusCode::OK, Reply::Done(sentence)),
            Ok(Err(refusal)) => {
                let busy = refusal == Refusal::Busy;
                let status =
                    if busy { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::CONFLICT };
                Answer(status, Reply::Refused(refusal))
            }
            Err(_) => {
                let why = "the allocator is busy; it may still carry out the order";
                Answer::failed(StatusCode::SERVICE_UNAVAILABLE, why)
            }
        }
    }

    /// Reads the log on another thread, since the log can be long and the disk slow.
    async fn audit(&self, Tail { last, job }: Tail) -> Answer {
        let folder = self.audit.clone();
        // It may still find the log of an earlier run.
        let is_dry = self.live.now().policy.dry_run;
        let reading = tokio::task::spawn_blocking(move || match job {
            _ if is_dry && !read::exists(&folder) => Ok(None),
            Some(job) => read::story(&folder, &job, last.into()).map(Some),
            None => read::last(&folder, last.into()).map(Some),
        });
        match reading.await.unwrap_or_else(|error| Err(error.into())) {
            Ok(None) => {
                let refusal = Refusal::Impossible(DRY_RUN_AUDIT.to_owned());
                Answer(StatusCode::CONFLICT, Reply::Refused(refusal))
            }
            Ok(Some(records)) => Answer(StatusCode::OK, Reply::Audit(records)),
            Err(error) => {
                let why = format!("cannot read the audit log: {error}");
                Answer::failed(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}

type Of = State<Requests>;

/// Method, path and answer of each request.
fn table() -> [(&'static str, &'static str, MethodRouter<Requests>); 2] {
    let expected = |methods: &str| {
        let why = format!("invalid method: expected {methods}");
        Answer::failed(StatusCode::METHOD_NOT_ALLOWED, why)
    };
    [
        ("POST", "/v1/orders", post(order).fallback(async move || expected("POST"))),
        ("GET", "/v1/audit", get(audit).fallback(async move || expected("GET or HEAD"))),
    ]
}

/// The method and the path of each request that only the control socket answers.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path))
}

async fn order(State(requests): Of, who: Extension<Who>, request: extract::Request) -> Answer {
    match command(request).await {
        Ok(command) => requests.order(command, who.0).await,
        Err((status, why)) => Answer::failed(status, format!("invalid request: {why}")),
    }
}

/// Reads the command in a body, whatever its content type.
async fn command(request: extract::Request) -> Result<Command, (StatusCode, String)> {
    let body = timeout(READ_TIMEOUT, Bytes::from_request(request, &())).await;
    let body = body.map_err(|late| (StatusCode::REQUEST_TIMEOUT, late.to_string()))?;
    let expected = || format!("expected a body of at most {MAX_LEN} bytes");
    let body = body.map_err(|error| (error.status(), expected()))?;
    serde_json::from_slice(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

async fn audit(State(requests): Of, tail: Result<Query<Tail>, QueryRejection>) -> Answer {
    match tail {
        Ok(Query(tail)) => requests.audit(tail).await,
        Err(error) => {
            let expected = "expected for example /v1/audit?last=20&job=NAME";
            Answer::failed(error.status(), format!("invalid request: {error}; {expected}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use hyper::Request as Head;
    use paceline_api::live::{Snapshot, pair};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn only_root_and_the_owner_may_order() {
        const ORDER: &str = r#"{"command":"manage","name":"vae"}"#;
        let (live, mut channels) = pair(Snapshot::default());
        let requests = Requests { live, audit: "/nowhere".into(), owner: 1000 };
        let line = format!("{{\"order\":{ORDER}}}\n");
        for uid in [1, 999, 1001, u32::MAX] {
            let who = Who { uid, pid: Some(7) };
            let reply = requests.answer(line.as_bytes(), who).await;
            assert!(matches!(&reply, Reply::Denied(why) if why.contains("user 1000")), "{reply:?}");
            let request = Head::post("/v1/orders").extension(who).body(Body::from(ORDER)).unwrap();
            let answer = requests.clone().routes().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        }
        assert!(channels.orders.try_recv().is_err(), "no order reaches the controller");
        channels.orders.close();
        for uid in [0, 1000] {
            let reply = requests.answer(line.as_bytes(), Who { uid, pid: None }).await;
            assert_eq!(reply, Reply::Refused(Refusal::Ending));
        }
    }
}
