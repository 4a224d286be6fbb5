//! Requests writes of limits and takes in their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use paceline_api::audit::Entry;
use paceline_api::live::Refusal;
use paceline_api::live::snapshot::Standing;
use paceline_api::plain;
use paceline_policy::limiter::{Change, Setting};
use paceline_policy::{Event, JobId};
use paceline_runtime::short;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Controller;
use super::commands::{self, Pending, called};
use super::write_queue::{Action, Done, Failure, Outcome, WriteRequest};
use crate::limits::{
    Actuator, Drift, HANG, LimitError, OnDrift, RESTORE_ALL_TIMEOUT, RESTORE_CONCURRENCY, Restored,
};

/// How long restoring one container's limits may take.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(20);
/// The most characters of an error in the log and in the audit log.
const MAX_ERROR: usize = 1000;

impl Controller {
    /// Requests that changes of limits are written.
    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        let Some(writes) = &mut self.writes else {
            for Change { job, from, to, why } in changes {
                info!(%job, "dry run: would change the limit from {from} to {to}: {why}");
            }
            return;
        };
        for change in changes {
            if let Some(container) = self.inventory.container(&change.job).map(str::to_owned) {
                let (job, what) = (Some(change.job.clone()), Action::Set(change));
                writes.push_back(WriteRequest { container, job, what, order: None });
            }
        }
    }

    /// Takes in the result of a write.
    pub(super) fn write_result(&mut self, done: Done) {
        let Done { request: WriteRequest { container, job, what, order }, outcome, seconds } = done;
        let result = match (outcome, what) {
            (Ok(Outcome::Set(in_force, drift)), Action::Set(change)) => {
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
            (Ok(Outcome::Set(..)), Action::Restore | Action::Answer) => Ok(()),
            (Err(failure), Action::Set(change)) => self.not_limited(container, change, &failure),
            (Err(failure), Action::Restore) => {
                let what = called(job.as_ref(), &container);
                let why = format!("cannot restore the limits of {what}: {}", chain(&failure));
                // It is tried again at every survey of all containers.
                if self.unrestored.insert(container, why.clone()).as_ref() != Some(&why) {
                    warn!("{why}");
                }
                Err(why)
            }
            (Err(failure), Action::Answer) => {
                let what = called(job.as_ref(), &container);
                let why = format!(
                    "cannot answer the outside change of {what}'s limit: {}",
                    chain(&failure)
                );
                warn!("{why}");
                Err(why)
            }
        };
        if let Some(Pending { order, done }) = order {
            self.answer(order, result.map(|()| done).map_err(Refusal::Failed));
            self.publish();
        }
    }

    fn limited(&mut self, container: String, change: Change, in_force: Setting, seconds: f64) {
        let Change { job, from, why, .. } = change;
        info!(%job, "limit {from} -> {in_force}: {why}");
        self.tally.writes += 1;
        self.tally.seconds += seconds;
        if let (Setting::Cap(share), Some(candidate)) = (in_force, self.inventory.get(&container)) {
            candidate.written = Some(share);
        }
        let (from, to, why) = (from.to_string(), in_force.to_string(), why.to_string());
        let name = job.to_string();
        self.recorder.write(&Entry::Limited { job: name, container, from, to, why, seconds });
        self.apply_event(Event::Applied(job, in_force));
    }

    fn not_limited(
        &mut self,
        container: String,
        change: Change,
        failure: &Failure,
    ) -> Result<(), String> {
        let Change { job, from, to, .. } = change;
        let error = chain(failure);
        if matches!(failure, Failure::Limit(error) if error.leaves_alone()) {
            if matches!(failure, Failure::Limit(LimitError::LeftAlone(..))) {
                warn!(%job, "{error}");
            }
            self.leave(&container, Some(job.clone()));
            return Err(format!("job {job}: {error}"));
        }
        // The next survey notices that it is gone.
        if !matches!(failure, Failure::Limit(LimitError::Gone(_))) {
            warn!(%job, "cannot change the limit from {from} to {to}: {error}");
            self.tally.failed += 1;
            let (job, to, error) = (job.to_string(), to.to_string(), error.clone());
            self.recorder.write(&Entry::Failed { job, container, to, error });
        }
        Err(format!("cannot limit job {job} to {to}: {error}"))
    }

    /// Takes in the answer to a limit that was changed outside of Paceline: written again or kept.
    fn answered(
        &mut self,
        container: &str,
        job: Option<JobId>,
        answered: Option<(Drift, OnDrift)>,
    ) {
        if let Some(candidate) = self.inventory.get(container) {
            candidate.end_check(answered.is_none());
        }
        let Some((Drift { written, found, .. }, response)) = answered else { return };
        let job_name = called(job.as_ref(), container);
        let written: Vec<_> = written.iter().map(ToString::to_string).collect();
        let written = written.join(", ");
        warn!(
            job = job_name,
            "limit changed outside Paceline: expected {written}, found {found}; {response}"
        );
        self.tally.drifts += 1;
        self.recorder.write(&Entry::Drifted {
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

    /// Stops managing a container whose limits were changed outside of Paceline.
    fn leave(&mut self, container: &str, job: Option<JobId>) {
        if let Some(candidate) = self.inventory.get(container) {
            candidate.release();
            candidate.written = None;
        }
        if let Some(job) = job {
            self.apply_event(Event::Gone(job));
        }
        self.decide_soon();
    }

    fn restored(&mut self, container: &str, job: Option<JobId>, restored: Option<Restored>) {
        self.unrestored.remove(container);
        if let Some(restored) = restored.filter(|restored| *restored != Restored::Gone) {
            info!("limits of container {}: {restored}", short(container));
            let how = restored.to_string();
            self.recorder.write(&Entry::Restored { container: container.to_owned(), how });
        }
        let machine = self.inventory.machine().clone();
        let Some(candidate) = self.inventory.get(container) else { return };
        candidate.written = None;
        let (in_force, weight) = (candidate.in_force(&machine), candidate.own_weight());
        if let Some(job) = job {
            self.apply_event(Event::Applied(job.clone(), Setting::Cap(in_force)));
            self.apply_event(Event::Applied(job, Setting::Weight(weight)));
        }
    }

    /// Restores every limit; returns the names of the containers for which that failed.
    pub(super) async fn restore_all(&mut self) -> Vec<String> {
        let Some(writes) = &mut self.writes else { return Vec::new() };
        let dropped = writes.drain().await;
        let actuator = Arc::clone(writes.actuator());
        for Pending { order, .. } in dropped {
            self.answer(order, Err(Refusal::Ending));
        }
        // Open connections may be all that this process may have.
        self.inventory.stop_asking();
        let until = Instant::now() + RESTORE_ALL_TIMEOUT;
        let hangs = AtomicBool::new(false);
        let put_back = async |id| {
            if Instant::now() >= until {
                actuator.hurry();
                if hangs.load(Ordering::Relaxed) {
                    actuator.ask_no_more();
                }
            }
            let restored = put_back(&actuator, id).await;
            if restored.as_ref().is_err_and(|error| error.timed_out) {
                hangs.store(true, Ordering::Relaxed);
            }
            restored
        };
        let first: Vec<_> = futures_util::stream::iter(actuator.pending())
            .map(put_back)
            .buffered(RESTORE_CONCURRENCY)
            .collect()
            .await;
        let mut left = Vec::new();
        for restored in first {
            // One at a time, as several together may have been too much for the engine or this process. What
            // hangs would hang again.
            let restored = match restored {
                Err(NotRestored { id, timed_out: false, .. }) => put_back(id).await,
                restored => restored,
            };
            match restored {
                Ok(entry) => self.recorder.write(&entry),
                Err(NotRestored { id, why, .. }) => {
                    warn!("{why}");
                    left.push(actuator.name_of(&id));
                }
            }
        }
        for leftover in actuator.leftovers() {
            warn!("{leftover}");
            left.push(short(&leftover.id).to_owned());
        }
        left
    }

    /// Tries again to restore containers that have a record and are not managed: they are gone or
    /// released, or wait. Also writes the files of the records again, if others have removed or changed
    /// them.
    pub(super) fn reconcile_records(&mut self) {
        let Some(writes) = &mut self.writes else { return };
        writes.actuator().mend_files();
        for id in writes.actuator().pending() {
            let candidate = self.inventory.get(&id);
            let keeps_limits = candidate.as_ref().is_some_and(|one| match one.standing {
                Standing::Managed | Standing::Pinned | Standing::Ending | Standing::Moving => true,
                Standing::Waiting | Standing::Released => false,
            });
            if !keeps_limits && !writes.has_to_do_with(&id) {
                let job = candidate.map(|one| one.job().clone());
                writes.push_back(commands::restore(id, job));
            }
        }
    }
}

/// Limits that could not be restored.
struct NotRestored {
    id: String,
    why: String,
    timed_out: bool,
}

/// Restores one container's limits.
async fn put_back(actuator: &Actuator, id: String) -> Result<Entry, NotRestored> {
    let (name, began) = (actuator.name_of(&id), Instant::now());
    match tokio::time::timeout(RESTORE_TIMEOUT, actuator.restore(&id)).await {
        Ok(Ok(restored)) => {
            let how = restored.map_or_else(|| "it was never limited".to_owned(), |r| r.to_string());
            info!("limits of container {name}: {how}");
            Ok(Entry::Restored { container: id, how })
        }
        Ok(Err(error)) => {
            let timed_out = began.elapsed() >= HANG;
            Err(NotRestored { id, why: chain(&error), timed_out })
        }
        Err(_) => {
            let why = format!("cannot restore the limits of container {name}: it takes too long");
            Err(NotRestored { id, why, timed_out: true })
        }
    }
}

/// An error and its causes on one line. It may quote what a container or its engine says.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    plain::cut(&text, MAX_ERROR)
}
