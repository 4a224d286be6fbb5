//! Follows a job's reports: its events, or its progress once a second if it has no events.

mod wake_limiter;

use std::sync::Arc;
use std::time::Duration;

use paceline_api::plain::message;
use paceline_wire::{Direction, Progress, State, Targets};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::events::Events;
use super::{EndpointError, Reach, Route, read};
use wake_limiter::WakeLimiter;

/// How often a job without events is asked.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// A new job that does not answer yet is asked again after its age divided by this, since its
/// container may just have begun. So its first answer is noticed at most 5 % late …
const RETRY_DIVISOR: u32 = 20;
/// … but not more often than this …
const MIN_RETRY: Duration = Duration::from_millis(50);
/// … and not less often than this, as any job that does not answer.
const MAX_RETRY: Duration = Duration::from_secs(5);
/// How long to wait before a stream of events that ended early is opened again. Each failure
/// doubles it, up to [`MAX_EVENTS_BACKOFF`].
const MIN_EVENTS_BACKOFF: Duration = Duration::from_secs(1);
const MAX_EVENTS_BACKOFF: Duration = Duration::from_mins(1);
/// After this long without an event, a job is asked whether it still answers.
const QUIET_TIMEOUT: Duration = Duration::from_secs(10);

/// One job's latest report. The job is not followed any more once this is dropped.
#[derive(Debug)]
pub struct Feed {
    latest: watch::Receiver<LatestReport>,
    overrides: watch::Sender<TargetOverrides>,
    /// How often a report was requested.
    asks: watch::Sender<u64>,
    _task: AbortOnDropHandle<()>,
}

/// The latest report of a job, and its state.
#[derive(Clone, Debug, Default)]
pub struct LatestReport {
    /// The report.
    pub progress: Option<Arc<Progress>>,
    /// Why the endpoint does not answer now.
    pub trouble: Option<Trouble>,
    /// How often it had urgent news.
    pub urgent: u64,
    /// How often it has reached a target.
    pub reached: u64,
    /// The number of the latest request that was answered or has failed.
    answered: u64,
}

/// Why an endpoint does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The reason, as a sentence.
    pub text: Arc<str>,
    /// Whether the endpoint may just not be up yet.
    pub may_pass: bool,
}

/// Targets from labels and orders, which the job itself does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TargetOverrides {
    /// The targets.
    pub targets: Targets,
    /// Whether the loss is minimized or maximized; overrides the report.
    pub direction: Option<Direction>,
}

impl Feed {
    /// Follows the endpoint that one of `routes` leads to. `wake` is notified of urgent news.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn follow(
        reach: Reach,
        routes: Vec<Route>,
        overrides: TargetOverrides,
        wake: Arc<Notify>,
    ) -> Self {
        let (sender, latest) = watch::channel(LatestReport::default());
        let judged = overrides;
        let (overrides, overridden) = watch::channel(overrides);
        let (asks, asked) = watch::channel(0);
        let wake_limiter = WakeLimiter::default();
        let listener = Listener {
            reach,
            routes,
            latest: sender,
            overrides: overridden,
            judged,
            asked,
            wake,
            wake_limiter,
        };
        Self {
            latest,
            overrides,
            asks,
            _task: AbortOnDropHandle::new(tokio::spawn(listener.run())),
        }
    }

    /// The latest report.
    pub fn latest(&self) -> LatestReport {
        self.latest.borrow().clone()
    }

    /// Requests a report now, whether the job sends events or not.
    pub fn ask(&self) {
        self.asks.send_modify(|asks| *asks += 1);
    }

    /// Whether the latest request was answered or has failed.
    pub fn has_answered(&self) -> bool {
        self.latest.borrow().answered == *self.asks.borrow()
    }

    /// Changes the targets. The job is asked for a report at once: a policy needs one, and the job
    /// may send none by itself for a while.
    pub fn set_overrides(&self, overrides: TargetOverrides) {
        self.overrides.send_replace(overrides);
    }
}

struct Listener {
    reach: Reach,
    routes: Vec<Route>,
    latest: watch::Sender<LatestReport>,
    overrides: watch::Receiver<TargetOverrides>,
    /// The targets as of the latest report.
    judged: TargetOverrides,
    asked: watch::Receiver<u64>,
    wake: Arc<Notify>,
    wake_limiter: WakeLimiter,
}

impl Listener {
    async fn run(mut self) {
        let began = Instant::now();
        let mut is_new = true;
        let mut events_at = Instant::now();
        let mut events_backoff = MIN_EVENTS_BACKOFF;
        loop {
            let members = self.reach.seen();
            let pause = match self.ask().await {
                Ok(()) => {
                    is_new = false;
                    let answered_at = Instant::now();
                    if answered_at >= events_at {
                        self.listen(members).await;
                        let lasted = answered_at.elapsed();
                        events_backoff = if lasted >= QUIET_TIMEOUT {
                            MIN_EVENTS_BACKOFF
                        } else {
                            (events_backoff * 2).min(MAX_EVENTS_BACKOFF)
                        };
                        events_at = Instant::now() + events_backoff;
                    }
                    ASK_INTERVAL
                }
                Err(error) => {
                    let may_begin = is_new && error.may_pass();
                    self.fail(error);
                    if may_begin {
                        (began.elapsed() / RETRY_DIVISOR).clamp(MIN_RETRY, MAX_RETRY)
                    } else {
                        MAX_RETRY
                    }
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.asked.changed() => {}
                _ = self.overrides.changed() => {}
            }
        }
    }

    /// Asks once. A route that works is tried first from then on.
    async fn ask(&mut self) -> Result<(), EndpointError> {
        let number = *self.asked.borrow_and_update();
        let answer = read(&self.reach, &self.routes).await;
        let result = answer.map(|(route, progress)| {
            self.routes.swap(0, route);
            self.hear(progress);
        });
        self.latest.send_modify(|latest| latest.answered = number);
        result
    }

    /// Follows the events until they end. The next request then shows the reason. Who sends them is
    /// checked again when the `members` of its network have changed.
    async fn listen(&mut self, members: usize) {
        let Some(route) = self.routes.first() else { return };
        let Ok(mut events) = Events::open(&self.reach, route).await else { return };
        loop {
            let event = tokio::select! {
                event = timeout(QUIET_TIMEOUT, events.next()) => event.ok(),
                _ = self.asked.changed() => None,
                _ = self.overrides.changed() => None,
                () = self.reach.changed(members) => return,
            };
            match event {
                Some(Ok(progress)) => self.hear(progress),
                Some(Err(_)) => return,
                None => {
                    if self.ask().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn hear(&mut self, progress: Progress) {
        let before = self.latest.borrow().progress.clone();
        let overrides = *self.overrides.borrow();
        let ordered = std::mem::replace(&mut self.judged, overrides) != overrides;
        let before = before.as_deref();
        let urgent = ordered || before.is_none_or(|before| is_urgent(before, &progress));
        let reached = before.is_some_and(|before| has_reached(before, &progress, overrides));
        self.latest.send_modify(|latest| {
            latest.progress = Some(Arc::new(progress));
            latest.trouble = None;
            latest.urgent += u64::from(urgent);
            latest.reached += u64::from(reached);
        });
        // A change of targets comes from an order, so the job's limit of wake-ups does not apply.
        if ordered || ((urgent || reached) && self.wake_limiter.take(Instant::now())) {
            self.wake.notify_one();
        }
    }

    fn fail(&mut self, error: EndpointError) {
        let may_pass = error.may_pass();
        let text = message(&format!("{:#}", anyhow::Error::from(error))).into();
        self.latest.send_modify(|latest| latest.trouble = Some(Trouble { text, may_pass }));
    }
}

/// Whether there is news on which any policy may act at once: the job's first report, its end,
/// another process, or a finished checkpoint.
fn is_urgent(before: &Progress, now: &Progress) -> bool {
    let (then, new) = (&before.checkpoint, &now.checkpoint);
    before.instance != now.instance
        || (is_starting(before) && !is_starting(now))
        || (has_ended(now) && !has_ended(before))
        || (then.answered, then.saved) != (new.answered, new.saved)
}

/// Whether the job has reached a target: by its own report, or by its loss for a target that it does
/// not know.
fn has_reached(before: &Progress, now: &Progress, overrides: TargetOverrides) -> bool {
    let direction = overrides.direction.unwrap_or(now.eval.direction);
    let crossed = |target: Option<f64>| {
        let reached = |progress: &Progress| {
            let (value, target) = (progress.eval.value, target);
            value.zip(target).is_some_and(|(value, target)| direction.reached(value, target))
        };
        reached(now) && !reached(before)
    };
    let newly = |before: Option<f64>, now: Option<f64>| before.is_none() && now.is_some();
    newly(before.reached.acceptable_at, now.reached.acceptable_at)
        || newly(before.reached.objective_at, now.reached.objective_at)
        || crossed(overrides.targets.acceptable)
        || crossed(overrides.targets.objective)
}

fn is_starting(progress: &Progress) -> bool {
    progress.state == State::Starting
}

fn has_ended(progress: &Progress) -> bool {
    matches!(progress.state, State::Finished | State::Failed)
}

#[cfg(test)]
mod tests;
