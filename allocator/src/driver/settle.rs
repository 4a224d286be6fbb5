//! Limits on their way to a container, and what came of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use paceline_policy::limiter::{Change, DEFAULT_WEIGHT, Setting};
use paceline_policy::{Event, JobId};
use tracing::{info, warn};

use super::hands::{Deed, Done, Failure, Outcome, What};
use super::orders::{Pending, called};
use super::{Driver, short};
use crate::actuate::{Actuator, Drift, LimitError, OnDrift, Restored};
use crate::audit::Entry;
use crate::live::Refusal;
use crate::live::snapshot::Standing;

/// How long a job at its objective has to end by itself, in seconds.
const END_PATIENCE: i32 = 30;
/// How long putting back one container's limits may take.
const RESTORE_PATIENCE: Duration = Duration::from_secs(20);
/// How many are put back at once at the end.
const AT_ONCE: usize = 4;

impl Driver {
    /// Has changes written.
    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        let Some(hands) = &mut self.hands else {
            for Change { job, from, to, why } in changes {
                info!(%job, "dry run: would change the limit from {from} to {to}: {why}");
            }
            return;
        };
        for change in changes {
            if let Some(container) = self.roster.container(&change.job).map(str::to_owned) {
                let (job, what) = (Some(change.job.clone()), What::Set(change));
                hands.last(Deed { container, job, what, order: None });
            }
        }
    }

    /// Takes in what came of a write.
    pub(super) fn settle(&mut self, done: Done) {
        let Done { deed: Deed { container, job, what, order }, outcome, seconds } = done;
        let came = match (outcome, what) {
            (Ok(Outcome::Set(in_force, drift)), What::Set(change)) => {
                if let Some(drift) = drift {
                    let answered = Some((drift, OnDrift::Reassert));
                    self.answered(&container, job, answered);
                }
                self.limited(container, change, in_force, seconds);
                Ok(())
            }
            (Ok(Outcome::Restored(restored)), _) => {
                self.restored(&container, job, restored);
                Ok(())
            }
            (Ok(Outcome::Answered(answered)), _) => {
                self.answered(&container, job, answered);
                Ok(())
            }
            (Ok(Outcome::Set(..)), What::Restore | What::Answer) => Ok(()),
            (Err(failure), What::Set(change)) => self.not_limited(container, change, &failure),
            (Err(failure), What::Restore) => {
                let what = called(job.as_ref(), &container);
                let why = format!("the limits of {what} are not back: {}", chain(&failure));
                warn!("{why}");
                Err(why)
            }
            (Err(failure), What::Answer) => {
                let what = called(job.as_ref(), &container);
                let why = format!("the limit of {what} has drifted: {}", chain(&failure));
                warn!("{why}");
                Err(why)
            }
        };
        if let Some(Pending { order, done }) = order {
            self.answer(order, came.map(|()| done).map_err(Refusal::Failed));
            self.publish();
        }
    }

    fn limited(&mut self, container: String, change: Change, in_force: Setting, seconds: f64) {
        let Change { job, from, why, .. } = change;
        info!(%job, "limit {from} -> {in_force}: {why}");
        self.tally.writes += 1;
        self.tally.seconds += seconds;
        if let (Setting::Cap(share), Some(candidate)) = (in_force, self.roster.get(&container)) {
            candidate.written = Some(share);
        }
        let (from, to, why) = (from.to_string(), in_force.to_string(), why.to_string());
        let name = job.to_string();
        self.write(&Entry::Limited { job: name, container, from, to, why, seconds });
        self.tell(Event::Applied(job, in_force));
    }

    fn not_limited(
        &mut self,
        container: String,
        change: Change,
        failure: &Failure,
    ) -> Result<(), String> {
        let Change { job, from, to, .. } = change;
        let error = chain(failure);
        if matches!(failure, Failure::Limit(LimitError::Yielded(_))) {
            self.leave(&container, Some(job.clone()));
            return Err(format!("job {job}: {error}"));
        }
        // Its going is noticed by the next survey.
        if !matches!(failure, Failure::Limit(LimitError::Gone(_))) {
            warn!(%job, "limit stays {from}, not {to}: {error}");
            self.tally.failed += 1;
            let (job, to, error) = (job.to_string(), to.to_string(), error.clone());
            self.write(&Entry::Failed { job, container, to, error });
        }
        Err(format!("job {job} is not held at {to}: {error}"))
    }

    /// Somebody else had changed a limit, and now it is again what it is to be, or theirs.
    fn answered(
        &mut self,
        container: &str,
        job: Option<JobId>,
        answered: Option<(Drift, OnDrift)>,
    ) {
        let Some((Drift { written, found, .. }, response)) = answered else {
            // A rounding of the kernel's: nothing to be asked about again.
            if let Some(candidate) = self.roster.get(container) {
                candidate.written = None;
            }
            return;
        };
        let job_name = called(job.as_ref(), container);
        let written: Vec<_> = written.iter().map(ToString::to_string).collect();
        let written = written.join(", ");
        warn!(job = job_name, "limit {written} is {found} by somebody else's doing: {response}");
        self.tally.drifts += 1;
        self.write(&Entry::Drifted {
            job: job_name,
            container: container.to_owned(),
            written,
            found,
            response: match response {
                OnDrift::Reassert => "reasserted".to_owned(),
                OnDrift::Yield => "yielded".to_owned(),
            },
        });
        if response == OnDrift::Yield {
            self.leave(container, job);
        }
    }

    /// Leaves a container to whoever has set its limits.
    fn leave(&mut self, container: &str, job: Option<JobId>) {
        if let Some(candidate) = self.roster.get(container) {
            candidate.release();
            candidate.written = None;
        }
        if let Some(job) = job {
            self.tell(Event::Gone(job));
        }
        self.hurry();
    }

    fn restored(&mut self, container: &str, job: Option<JobId>, restored: Option<Restored>) {
        if let Some(restored) = restored.filter(|restored| *restored != Restored::Gone) {
            info!("limits of container {}: {restored}", short(container));
            let how = restored.to_string();
            self.write(&Entry::Restored { container: container.to_owned(), how });
        }
        let machine = self.roster.machine().clone();
        let Some(candidate) = self.roster.get(container) else { return };
        candidate.written = None;
        let in_force = candidate.in_force(&machine);
        if let Some(job) = job {
            self.tell(Event::Applied(job.clone(), Setting::Cap(in_force)));
            self.tell(Event::Applied(job, Setting::Weight(DEFAULT_WEIGHT)));
        }
    }

    /// Begins to end a job that has reached its objective.
    pub(super) fn end(&mut self, job: &JobId) {
        let Some(id) = self.roster.container(job).map(str::to_owned) else { return };
        let Some(hands) = &self.hands else {
            info!(%job, "dry run: would end it, it is at its objective");
            return;
        };
        info!(%job, "at its objective: it is ended");
        let actuator = Arc::clone(hands.actuator());
        if let Some(candidate) = self.roster.get(&id) {
            candidate.standing = Standing::Ending;
        }
        self.write(&Entry::Terminated { job: job.to_string(), container: id.clone() });
        let job = job.clone();
        self.endings.spawn(async move {
            if let Err(error) = actuator.end(&id, END_PATIENCE).await {
                warn!(%job, "it was not ended: {}", chain(&error));
            }
        });
    }

    /// Puts every limit back; returns how many are not.
    pub(super) async fn restore_all(&mut self) -> anyhow::Result<usize> {
        let Some(hands) = &mut self.hands else { return Ok(0) };
        let dropped = hands.rest().await;
        let actuator = Arc::clone(hands.actuator());
        for Pending { order, .. } in dropped {
            self.answer(order, Err(Refusal::Ending));
        }
        let pending = actuator.pending().context("the original limits cannot be read")?;
        let restored: Vec<Option<Entry>> = futures_util::stream::iter(pending)
            .map(|id| put_back(&actuator, id))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let left = restored.iter().filter(|restored| restored.is_none()).count();
        for entry in restored.into_iter().flatten() {
            self.write(&entry);
        }
        Ok(left)
    }
}

/// Puts one container's limits back; says so when that fails.
async fn put_back(actuator: &Actuator, id: String) -> Option<Entry> {
    let container = short(&id);
    match tokio::time::timeout(RESTORE_PATIENCE, actuator.restore(&id)).await {
        Ok(Ok(restored)) => {
            let how = restored.map_or_else(|| "it was never limited".to_owned(), |r| r.to_string());
            info!("limits of container {container}: {how}");
            Some(Entry::Restored { container: id, how })
        }
        Ok(Err(error)) => {
            warn!("{}", chain(&error));
            None
        }
        Err(_) => {
            warn!("limits of container {container} were not put back in time");
            None
        }
    }
}

/// An error and its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
