//! Surveys: asks the container engine which containers exist, in a task of its own, so that a slow
//! engine does not delay the controller.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use paceline_runtime::{Container, Runtime, RuntimeError};
use tokio::task::JoinSet;

use super::engine_events::Touched;

/// A survey that takes longer is given up and repeated.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the engine may take to describe one container: one that it never describes must not make
/// each survey of the others late.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(3);
/// How many containers are described at once.
const DESCRIBE_CONCURRENCY: usize = 16;

/// The survey that is under way, if any: at most one at a time.
#[derive(Debug, Default)]
pub(super) struct Surveys(JoinSet<Result<Survey, SurveyError>>);

/// The containers that exist.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The ids of all running containers that opted in or were adopted.
    pub(super) present: BTreeSet<String>,
    /// The new and the touched ones, described.
    pub(super) described: Vec<Container>,
    /// The ids that were known when the survey began; it holds nothing about later ones.
    pub(super) known: BTreeSet<String>,
    /// The ids that do not exist any more.
    pub(super) missing: BTreeSet<String>,
}

/// What a survey asks about.
#[derive(Debug)]
pub(super) struct Scope {
    /// Labels that a container must have, besides the one that opts it in.
    pub(super) labels: Vec<String>,
    /// Containers that were opted in by an order.
    pub(super) adopted: BTreeSet<String>,
    /// Containers that are known, and described again only if touched.
    pub(super) known: BTreeSet<String>,
    /// Containers that may have changed.
    pub(super) touched: Touched,
}

/// Why a survey failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SurveyError {
    #[error("cannot list the container engine's containers")]
    Engine(#[from] RuntimeError),
    #[error("cannot list the container engine's containers: it does not answer in time")]
    Late,
}

impl Surveys {
    pub(super) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn begin(&mut self, runtime: Runtime, scope: Scope) {
        self.0.spawn(async move {
            let late = |_| Err(SurveyError::Late);
            tokio::time::timeout(SURVEY_TIMEOUT, survey(&runtime, scope)).await.unwrap_or_else(late)
        });
    }

    /// Waits for the survey that is under way; never returns if there is none. Nothing is lost when
    /// the future is dropped.
    pub(super) async fn ended(&mut self) -> Result<Survey, SurveyError> {
        match self.0.join_next().await {
            Some(Ok(survey)) => survey,
            Some(Err(_)) => Err(SurveyError::Late),
            None => std::future::pending().await,
        }
    }
}

async fn survey(runtime: &Runtime, scope: Scope) -> Result<Survey, SurveyError> {
    let mut present: BTreeSet<String> =
        runtime.opted_in(&scope.labels).await?.into_iter().collect();
    present.extend(scope.adopted);
    let (known, touched) = (&scope.known, &scope.touched);
    let news: Vec<String> =
        present.iter().filter(|id| !known.contains(*id) || touched.holds(id)).cloned().collect();
    let answers = futures_util::stream::iter(news)
        .map(|id| async move {
            (tokio::time::timeout(DESCRIBE_TIMEOUT, runtime.inspect(&id)).await, id)
        })
        .buffer_unordered(DESCRIBE_CONCURRENCY);
    let answers: Vec<_> = answers.collect().await;
    let (mut described, mut missing) = (Vec::new(), BTreeSet::new());
    for (answer, id) in answers {
        match answer {
            Ok(Ok(Some(container))) if container.pid.is_some() => described.push(container),
            Ok(Ok(Some(_))) => {
                present.remove(&id);
            }
            Ok(Ok(None)) => missing.extend(present.take(&id)),
            // The next survey asks again. Until then it counts as present, so a known one stays.
            Ok(Err(error)) => tracing::debug!("cannot describe container {id}: {error}"),
            Err(_) => tracing::debug!("cannot describe container {id}: the engine timed out"),
        }
    }
    Ok(Survey { present, described, known: scope.known, missing })
}

#[cfg(test)]
mod tests {
    use paceline_runtime::docker::Docker;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixListener, UnixStream};

    use super::*;

    /// Answers one request. A container whose name begins with `mute` is listed and never described.
    async fn answer(mut stream: UnixStream) {
        let mut request = [0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..length]);
        let path = request.split([' ', '?']).nth(1).unwrap();
        let body = match path.rsplit('/').nth(1) {
            Some("containers") => {
                json!([{"Id": "a"}, {"Id": "mute-known"}, {"Id": "b"}, {"Id": "mute-new"}])
            }
            Some(id) if id.starts_with("mute") => std::future::pending().await,
            id => json!({
                "Id": id, "Name": format!("/{}", id.unwrap()),
                "State": {"Running": true, "Pid": 7}, "Config": {}, "HostConfig": {},
            }),
        };
        let body = body.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn container_that_is_never_described_does_not_stop_the_survey() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut engine = JoinSet::new();
        engine.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(answer(stream));
            }
        });
        let runtime = Docker::at(&format!("unix://{}", socket.display())).unwrap().into();
        let known = BTreeSet::from(["mute-known".to_owned()]);
        let (labels, adopted) = (Vec::new(), BTreeSet::new());
        let mut surveys = Surveys::default();
        surveys.begin(runtime, Scope { labels, adopted, known, touched: Touched::Any });
        let survey = surveys.ended().await.unwrap();
        let described: BTreeSet<&str> =
            survey.described.iter().map(|container| container.id.as_str()).collect();
        assert_eq!(described, ["a", "b"].into());
        assert!(survey.present.contains("mute-known"), "it is not taken for gone");
        assert!(survey.missing.is_empty(), "{survey:?}");
    }
}
