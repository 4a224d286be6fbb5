//! Carries out a move from its first step to its end. Each step is recorded before it begins, and has
//! a timeout.

use std::time::Duration;

use paceline_api::audit::Entry;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::journal::Journal;
use super::procedure::{MigrationState, Step};
use super::{MigrationBackend, Move, StepError, StepOutcome};
use crate::crash;

/// How long a step may take that does not wait for the job.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait before a step that cannot be undone is tried again.
const STEP_BACKOFF: Duration = Duration::from_secs(2);
/// How many failures end the retries, if the allocator is ending or the step is not essential.
const MAX_LAST_TRIES: u32 = 5;

/// Progress of a move that its host must know at once.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A container was created that must not be taken for another job.
    Made {
        /// Its id.
        successor: String,
    },
    /// The container at the source is paused.
    Frozen,
    /// The next step.
    Now(Step),
}

/// The result of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationResult {
    /// The move as it ended.
    pub plan: Move,
    /// How it ended.
    pub ended: Ended,
    /// The container on the target, if one was created.
    pub successor: Option<String>,
    /// Seconds until the checkpoint was acknowledged. The job was still making progress then, apart
    /// from the time for saving.
    pub saving: Option<f64>,
    /// Seconds without progress: from the checkpoint to the first report after it. For a job that
    /// stays, the time for which it was paused.
    pub cost: Option<f64>,
}

/// How a move ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The job runs on the target.
    Moved,
    /// The job runs at the source.
    Stayed(String),
    /// The move could be neither completed nor undone yet; it stays in the journal.
    Stuck(String),
}

impl MigrationResult {
    /// The entry for the audit log.
    pub fn entry(&self) -> Entry {
        let Move { job, from, to, reason, source, .. } = self.plan.clone();
        let reason = reason.to_string();
        let (saving, seconds) = (self.saving, self.cost);
        match &self.ended {
            Ended::Moved => {
                let successor = self.successor.clone();
                Entry::Moved {
                    job,
                    container: source,
                    successor,
                    from,
                    to,
                    reason,
                    saving,
                    seconds,
                }
            }
            Ended::Stayed(why) | Ended::Stuck(why) => {
                let (container, why) = (Some(source), why.clone());
                Entry::Stayed { job, container, from, to, reason, why, seconds }
            }
        }
    }

    /// Logs how the move ended.
    pub fn log(&self) {
        let Move { job, from, to, .. } = &self.plan;
        match &self.ended {
            Ended::Moved => {
                let seconds = self.cost.unwrap_or_default();
                info!(%job, "it has moved from {from} to {to}, {seconds:.1} s without progress");
            }
            Ended::Stayed(why) | Ended::Stuck(why) => {
                warn!(%job, "it stays on {from} and does not move to {to}: {why}");
            }
        }
    }
}

/// The channel for progress of moves, each with the job's name. It need not have a receiver.
pub type NewsSender = mpsc::Sender<(String, News)>;

/// Carries out a move. `within` is how long the job may take to save and to report. `tell` receives
/// the progress. When `ending` is cancelled, the job stays at the source if that is still possible.
pub async fn execute(
    mut plan: Move,
    backend: &impl MigrationBackend,
    journal: &impl Journal,
    (within, ending): (Duration, &CancellationToken),
    tell: &NewsSender,
) -> MigrationResult {
    let (mut successor, mut saving, mut cost) = (None, None, None);
    // Since when progress is lost: for a job that moves, and for one that stays.
    let (mut saved_at, mut frozen_at) = (None, None);
    let mut tries = 0;
    let ended = loop {
        let step = plan.procedure.step();
        news(tell, &plan, News::Now(step)).await;
        let began = Instant::now();
        if let Err(error) = journal.write(&plan).await {
            let why = format!("cannot write the journal: {:#}", anyhow::Error::from(error));
            if plan.procedure.refused(why.clone()).is_some() {
                continue;
            }
            warn!(job = plan.job, "{why}");
        }
        if step == Step::Pause {
            frozen_at = Some(began);
        }
        crash::point(step.name());
        let outcome = attempt(step, &plan, backend, within, ending).await;
        crash::point(done(step));
        match &outcome {
            Ok(StepOutcome::Made(id)) => {
                successor = Some(id.clone());
                news(tell, &plan, News::Made { successor: id.clone() }).await;
            }
            Ok(StepOutcome::Saved(step)) => {
                plan.saved = *step;
                saving = Some(began.elapsed().as_secs_f64());
                saved_at = Some(Instant::now());
            }
            Ok(StepOutcome::None) if step == Step::Pause => news(tell, &plan, News::Frozen).await,
            Ok(StepOutcome::Refuted(why)) => {
                warn!(job = plan.job, "its move to {} is undone: {why}", plan.to);
            }
            Ok(StepOutcome::None) => {
                let since = lost_since(step, saved_at, frozen_at);
                cost = cost.or(since.map(|at| at.elapsed().as_secs_f64()));
            }
            Err(why) => {
                info!(
                    job = plan.job,
                    "its move to {}: step {} failed: {why}",
                    plan.to,
                    step.name()
                );
            }
        }
        let failed = outcome.as_ref().err().cloned();
        let state = match outcome {
            Ok(StepOutcome::Refuted(why)) => plan.procedure.refuted(why),
            outcome => plan.procedure.finished(outcome.map(drop)),
        };
        match state {
            MigrationState::Continue(_) => tries = 0,
            // The name is only for people: the job runs on the target under any name.
            MigrationState::Retry(Step::Rename) if tries >= MAX_LAST_TRIES => {
                let why = failed.unwrap_or_default();
                warn!(job = plan.job, "cannot rename container {}: {why}", plan.successor());
                break Ended::Moved;
            }
            MigrationState::Retry(_) if ending.is_cancelled() && tries >= MAX_LAST_TRIES => {
                break Ended::Stuck(failed.unwrap_or_default());
            }
            MigrationState::Retry(_) => {
                tries += 1;
                sleep(STEP_BACKOFF).await;
            }
            MigrationState::Moved => break Ended::Moved,
            MigrationState::Stayed(why) => break Ended::Stayed(why),
        }
    };
    if !matches!(ended, Ended::Stuck(_))
        && let Err(error) = journal.forget(&plan).await
    {
        warn!("cannot remove a finished move from the journal: {:#}", anyhow::Error::from(error));
    }
    MigrationResult { plan, ended, successor, saving, cost }
}

/// Since when progress was lost, if this step ends that.
fn lost_since(
    step: Step,
    saved_at: Option<Instant>,
    frozen_at: Option<Instant>,
) -> Option<Instant> {
    match step {
        Step::Prove => saved_at,
        Step::Resume => frozen_at,
        Step::Create
        | Step::Save
        | Step::Pause
        | Step::Start
        | Step::Retire
        | Step::Rename
        | Step::Discard => None,
    }
}

async fn news(tell: &NewsSender, plan: &Move, news: News) {
    drop(tell.send((plan.job.clone(), news)).await);
}

/// Does one step, with its timeout.
async fn attempt(
    step: Step,
    plan: &Move,
    backend: &impl MigrationBackend,
    within: Duration,
    ending: &CancellationToken,
) -> Result<StepOutcome, String> {
    const ENDS: &str = "the allocator is shutting down";
    if step.can_be_undone() && ending.is_cancelled() {
        return Err(ENDS.to_owned());
    }
    let limit = if step.waits_for_the_job() { within } else { STEP_TIMEOUT };
    let acting = timeout(limit, backend.carry_out(step, plan));
    let outcome = tokio::select! {
        outcome = acting => outcome,
        // A request to the engine is awaited: the engine may still carry it out.
        () = ending.cancelled(), if step.waits_for_the_job() => return Err(ENDS.to_owned()),
    };
    match outcome {
        Ok(outcome) => outcome.map_err(as_text),
        Err(_) => Err(format!("{} within {} s", late(step), limit.as_secs())),
    }
}

fn as_text(error: StepError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn late(step: Step) -> &'static str {
    match step {
        Step::Save => "the job has not saved a checkpoint",
        Step::Prove => "the job has not reported from the target",
        Step::Create
        | Step::Pause
        | Step::Start
        | Step::Retire
        | Step::Rename
        | Step::Discard
        | Step::Resume => "the engine has not answered",
    }
}

/// The name of the moment just after a step.
const fn done(step: Step) -> &'static str {
    match step {
        Step::Create => "created",
        Step::Save => "saved",
        Step::Pause => "paused",
        Step::Start => "started",
        Step::Prove => "proved",
        Step::Retire => "retired",
        Step::Rename => "renamed",
        Step::Discard => "discarded",
        Step::Resume => "resumed",
    }
}

#[cfg(test)]
pub(super) mod tests;
