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
    /// Containers that do not run any more, and may have been removed.
    pub(super) ended: Vec<String>,
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
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
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
    let ended = scope.ended.into_iter().filter(|id| !present.contains(id));
    let asked: Vec<String> = news.into_iter().chain(ended).collect();
    let answers = futures_util::stream::iter(asked)
        .map(|id| async move {
            (tokio::time::timeout(DESCRIBE_TIMEOUT, runtime.inspect(&id)).await, id)
        })
        .buffer_unordered(DESCRIBE_CONCURRENCY);
    let answers: Vec<_> = answers.collect().await;
    let (mut described, mut missing) = (Vec::new(), BTreeSet::new());
    for (answer, id) in answers {
        match answer {
            // One that has ended may run again by now: the next survey lists it.
            Ok(Ok(Some(container))) if container.pid.is_some() && present.contains(&id) => {
                described.push(container);
            }
            Ok(Ok(Some(_))) => {
                present.remove(&id);
            }
            Ok(Ok(None)) => {
                present.remove(&id);
                missing.insert(id);
            }
            // The next survey asks again. Until then it counts as present, so a known one stays.
            Ok(Err(error)) => tracing::debug!("cannot describe container {id}: {error}"),
            Err(_) => tracing::debug!("cannot describe container {id}: the engine timed out"),
        }
    }
    Ok(Survey { present, described, known: scope.known, missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[should_panic(expected = "a bug")]
    async fn bug_of_a_survey_is_not_taken_for_a_late_engine() {
        let mut surveys = Surveys::default();
        surveys.0.spawn(async { Ok(std::iter::empty().next().expect("a bug")) });
        drop(surveys.ended().await);
    }
}
