//! A move from its first step to its end: what the procedure says is done, in time, and written
//! down before.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::journal::Journal;
use super::procedure::{Course, Step};
use super::{Carrier, CarryError, Fact, Move};
use crate::audit::Entry;
use crate::crash;

/// How long a step may take that does not wait for the job.
const PATIENCE: Duration = Duration::from_secs(30);
/// What must be done is tried again after this while …
const RETRY: Duration = Duration::from_secs(2);
/// … and so many times, once the allocator is to end or where the job is well without it.
const LAST_TRIES: u32 = 5;

/// What whoever watches a move must know at once.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A container was made that is not to be taken for another job.
    Made {
        /// Its id.
        successor: String,
    },
    /// The container at the source is frozen.
    Frozen,
    /// The next step.
    Now(Step),
}

/// What has come of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Trip {
    /// The move as it ended.
    pub plan: Move,
    /// How.
    pub ended: Ended,
    /// The container on the target, if one was made.
    pub successor: Option<String>,
    /// Seconds until the checkpoint was acknowledged, while the job made progress but for saving it.
    pub saving: Option<f64>,
    /// Seconds without progress: from the checkpoint to the first report after it or, of a job that
    /// stays, for as long as it was frozen.
    pub cost: Option<f64>,
}

/// How a move ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The job runs on the target.
    Moved,
    /// The job runs at the source.
    Stayed(String),
    /// It could be neither completed nor undone yet: the journal has it.
    Stuck(String),
}

impl Trip {
    /// What the audit log is to say of it.
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

    /// Tells people how it ended.
    pub(crate) fn log(&self) {
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

/// Where news of moves go, each with the job's name. Nobody need listen.
pub type Tell = mpsc::Sender<(String, News)>;

/// Carries a move out. `within` is how long the job may take to save and to report, `tell` is told
/// of what cannot wait; when `ending` is cancelled, the job stays where it is if it still can.
pub async fn carry(
    mut plan: Move,
    carrier: &impl Carrier,
    journal: &impl Journal,
    (within, ending): (Duration, &CancellationToken),
    tell: &Tell,
) -> Trip {
    let (mut successor, mut saving, mut cost) = (None, None, None);
    // From when on progress does not count: where the job moves, and where it stays.
    let (mut saved_at, mut frozen_at) = (None, None);
    let mut tries = 0;
    let ended = loop {
        let step = plan.course.step();
        news(tell, &plan, News::Now(step)).await;
        let began = Instant::now();
        if let Err(error) = journal.write(&plan).await {
            let why = format!("the journal cannot be written: {:#}", anyhow::Error::from(error));
            if plan.course.refused(why.clone()).is_some() {
                continue;
            }
            warn!(job = plan.job, "{why}");
        }
        if step == Step::Pause {
            frozen_at = Some(began);
        }
        crash::point(step.name());
        let outcome = attempt(step, &plan, carrier, within, ending).await;
        crash::point(done(step));
        match &outcome {
            Ok(Fact::Made(id)) => {
                successor = Some(id.clone());
                news(tell, &plan, News::Made { successor: id.clone() }).await;
            }
            Ok(Fact::Saved(step)) => {
                plan.saved = *step;
                saving = Some(began.elapsed().as_secs_f64());
                saved_at = Some(Instant::now());
            }
            Ok(Fact::None) if step == Step::Pause => news(tell, &plan, News::Frozen).await,
            Ok(Fact::Refuted(why)) => {
                warn!(job = plan.job, "moving it to {} is given up: {why}", plan.to);
            }
            Ok(Fact::None) => {
                let since = lost_since(step, saved_at, frozen_at);
                cost = cost.or(since.map(|at| at.elapsed().as_secs_f64()));
            }
            Err(why) => {
                info!(job = plan.job, "moving it to {}: {} failed: {why}", plan.to, step.name());
            }
        }
        let failed = outcome.as_ref().err().cloned();
        let course = match outcome {
            Ok(Fact::Refuted(why)) => plan.course.refuted(why),
            outcome => plan.course.came(outcome.map(drop)),
        };
        match course {
            Course::GoOn(_) => tries = 0,
            // A name is for people: the job is on the target whatever it is called there.
            Course::Again(Step::Rename) if tries >= LAST_TRIES => {
                let why = failed.unwrap_or_default();
                warn!(job = plan.job, "it keeps the name {}: {why}", plan.successor());
                break Ended::Moved;
            }
            Course::Again(_) if ending.is_cancelled() && tries >= LAST_TRIES => {
                break Ended::Stuck(failed.unwrap_or_default());
            }
            Course::Again(_) => {
                tries += 1;
                sleep(RETRY).await;
            }
            Course::Moved => break Ended::Moved,
            Course::Stayed(why) => break Ended::Stayed(why),
        }
    };
    if !matches!(ended, Ended::Stuck(_))
        && let Err(error) = journal.forget(&plan).await
    {
        warn!("a move that is over stays in the journal: {:#}", anyhow::Error::from(error));
    }
    Trip { plan, ended, successor, saving, cost }
}

/// Since when the job has made no progress that counts, where it makes some again by this step.
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

async fn news(tell: &Tell, plan: &Move, news: News) {
    drop(tell.send((plan.job.clone(), news)).await);
}

/// Does one step in time.
async fn attempt(
    step: Step,
    plan: &Move,
    carrier: &impl Carrier,
    within: Duration,
    ending: &CancellationToken,
) -> Result<Fact, String> {
    const ENDS: &str = "the allocator ends";
    if step.can_be_undone() && ending.is_cancelled() {
        return Err(ENDS.to_owned());
    }
    let patience = if step.waits_for_the_job() { within } else { PATIENCE };
    let acting = timeout(patience, carrier.carry_out(step, plan));
    let outcome = tokio::select! {
        outcome = acting => outcome,
        // What the engine is at is waited for: it may do it all the same.
        () = ending.cancelled(), if step.waits_for_the_job() => return Err(ENDS.to_owned()),
    };
    match outcome {
        Ok(outcome) => outcome.map_err(in_words),
        Err(_) => Err(format!("{} within {} s", late(step), patience.as_secs())),
    }
}

fn in_words(error: CarryError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn late(step: Step) -> &'static str {
    match step {
        Step::Save => "the job has not saved a checkpoint",
        Step::Prove => "the job has not reported from there",
        Step::Create
        | Step::Pause
        | Step::Start
        | Step::Retire
        | Step::Rename
        | Step::Discard
        | Step::Resume => "the engine has not answered",
    }
}

/// What the moment just after a step is called.
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
