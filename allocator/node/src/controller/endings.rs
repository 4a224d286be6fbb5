//! Ends jobs that have reached their objective. The next decision asks again for one that could not be
//! ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use paceline_api::audit::Entry;
use paceline_api::live::snapshot::Standing;
use paceline_policy::{Event, JobId};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, info, warn};

use super::Controller;
use super::results::chain;
use crate::limits::LimitError;

/// How long a job at its objective may take to end after it was asked to, in seconds.
const END_GRACE: i32 = 30;

/// Jobs that are being ended, which may take as long as their grace period.
#[derive(Debug, Default)]
pub(super) struct Endings {
    under_way: JoinSet<EndAttempt>,
    /// Containers that could not be ended. The log and the audit log name each once, however often it is
    /// tried.
    failed: BTreeSet<String>,
}

/// A finished attempt to end a job, successful or not.
#[derive(Debug)]
pub(super) struct EndAttempt {
    container: String,
    job: JobId,
    result: Result<(), LimitError>,
}

impl Endings {
    /// Waits for the next finished attempt; never returns if none is under way. Nothing is lost when
    /// the future is dropped.
    pub(super) async fn done(&mut self) -> EndAttempt {
        match self.under_way.join_next().await {
            Some(Ok(attempt)) => attempt,
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => std::future::pending().await,
        }
    }

    /// The container no longer runs.
    pub(super) fn forget(&mut self, container: &str) {
        self.failed.remove(container);
    }
}

impl Controller {
    /// Starts ending a job that has reached its objective.
    pub(super) fn end(&mut self, job: &JobId) {
        let Some(container) = self.inventory.container(job).map(str::to_owned) else { return };
        let Some(writes) = &self.writes else {
            info!(%job, "dry run: would end the job: it has reached its objective");
            return;
        };
        let actuator = Arc::clone(writes.actuator());
        if !self.endings.failed.contains(&container) {
            info!(%job, "ending the job: it has reached its objective");
            let (job, container) = (job.to_string(), container.clone());
            self.recorder.write(&Entry::Terminated { job, container });
        }
        if let Some(candidate) = self.inventory.get(&container) {
            candidate.standing = Standing::Ending;
        }
        let job = job.clone();
        self.endings.under_way.spawn(async move {
            let result = actuator.end(&container, END_GRACE).await;
            EndAttempt { container, job, result }
        });
    }

    /// Waits until the jobs that are being ended have ended, but not after `deadline`.
    pub(super) async fn finish_endings(&mut self, deadline: Instant) {
        while !self.endings.under_way.is_empty() {
            let Ok(attempt) = timeout_at(deadline, self.endings.done()).await else {
                let jobs = self.endings.under_way.len();
                warn!("the run ends before {jobs} jobs that have reached their objective");
                return;
            };
            self.end_result(attempt);
        }
    }

    /// Takes in the result of an attempt to end a job.
    pub(super) fn end_result(&mut self, EndAttempt { container, job, result }: EndAttempt) {
        let error = match result {
            // The next survey notices that it is gone.
            Ok(()) | Err(LimitError::Gone(_)) => return self.endings.forget(&container),
            Err(error) => chain(&error),
        };
        let Some(candidate) = self.inventory.get(&container) else { return };
        // An order may have released it meanwhile.
        if candidate.standing != Standing::Ending {
            return;
        }
        candidate.standing = Standing::Managed;
        if self.endings.failed.insert(container) {
            warn!(%job, "cannot end the job, each decision tries again: {error}");
        } else {
            debug!(%job, "cannot end the job: {error}");
        }
        self.apply_event(Event::NotEnded(job));
        self.publish();
    }
}
