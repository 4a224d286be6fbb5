//! Asking the engine which containers there are: by a task of its own, so that a slow engine keeps
//! nobody waiting.

use std::collections::BTreeSet;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use futures_util::StreamExt;
use tokio::task::JoinSet;

use super::engine_events::Touched;
use crate::observe::container::{self, Container};

/// An engine that takes longer is asked again.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many containers are asked about at once.
const AT_ONCE: usize = 16;

/// At most one survey at a time.
#[derive(Debug, Default)]
pub(super) struct Surveys(JoinSet<Result<Survey, SurveyError>>);

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The ids of all containers that run and are ours to watch.
    pub(super) present: BTreeSet<String>,
    /// Those that were asked about.
    pub(super) described: Vec<Container>,
    /// Those that were known when the engine was asked: it says nothing of others.
    pub(super) known: BTreeSet<String>,
    /// Those that are no more, running or not.
    pub(super) missing: BTreeSet<String>,
}

/// What is asked about.
#[derive(Debug)]
pub(super) struct Scope {
    /// Labels that a container must have, beside the one that opts it in.
    pub(super) labels: Vec<String>,
    /// Containers that were opted in by an order.
    pub(super) adopted: BTreeSet<String>,
    /// Containers that are known …
    pub(super) known: BTreeSet<String>,
    /// … but are to be looked at again.
    pub(super) touched: Touched,
}

/// Why there is no survey.
#[derive(Debug, thiserror::Error)]
pub(super) enum SurveyError {
    #[error("the engine does not list its containers")]
    Engine(#[from] EngineError),
    #[error("the engine does not list its containers in time")]
    Late,
}

impl Surveys {
    pub(super) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn begin(&mut self, docker: Docker, scope: Scope) {
        self.0.spawn(async move {
            let late = |_| Err(SurveyError::Late);
            tokio::time::timeout(PATIENCE, survey(&docker, scope)).await.unwrap_or_else(late)
        });
    }

    /// The survey that has ended; waits for ever where none is under way. Nothing is lost when this
    /// is given up.
    pub(super) async fn ended(&mut self) -> Result<Survey, SurveyError> {
        match self.0.join_next().await {
            Some(Ok(survey)) => survey,
            Some(Err(_)) => Err(SurveyError::Late),
            None => std::future::pending().await,
        }
    }
}

async fn survey(docker: &Docker, scope: Scope) -> Result<Survey, SurveyError> {
    let mut present: BTreeSet<String> =
        container::opted_in(docker, &scope.labels).await?.into_iter().collect();
    present.extend(scope.adopted);
    let (known, touched) = (&scope.known, &scope.touched);
    let news: Vec<String> =
        present.iter().filter(|id| !known.contains(*id) || touched.holds(id)).cloned().collect();
    let answers = futures_util::stream::iter(news)
        .map(|id| async move { (container::inspect(docker, &id).await, id) })
        .buffer_unordered(AT_ONCE);
    let answers: Vec<_> = answers.collect().await;
    let (mut described, mut missing) = (Vec::new(), BTreeSet::new());
    for (answer, id) in answers {
        match answer {
            Ok(Some(container)) if container.pid.is_some() => described.push(container),
            Ok(Some(_)) => {
                present.remove(&id);
            }
            Ok(None) => missing.extend(present.take(&id)),
            // What is known of it stays as it is: the next survey asks again.
            Err(error) => tracing::debug!("container {id} is not described: {error}"),
        }
    }
    Ok(Survey { present, described, known: scope.known, missing })
}
