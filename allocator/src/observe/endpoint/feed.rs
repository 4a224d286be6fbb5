//! What a job says, as it says it: its events are followed, and where there are none it is asked
//! once a second.

mod nudges;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use paceline_wire::{Direction, Progress, State, Targets};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::events::Events;
use super::{EndpointError, Way, read};
use nudges::Nudges;

/// How often a job without events is asked.
const POLL: Duration = Duration::from_secs(1);
/// A new job that does not answer yet, as its container may just have begun, is asked again after this
/// part of the time since it is new: that is how late its beginning is noticed at most.
const LATE: u32 = 20;
/// Not more often than this.
const EAGER: Duration = Duration::from_millis(50);
/// How often one that does not answer is asked at least.
const RETRY: Duration = Duration::from_secs(5);
/// Events that fail to come by as long as this are asked for ever less often, up to the latter.
const FIRST_BREAK: Duration = Duration::from_secs(1);
const LONGEST_BREAK: Duration = Duration::from_mins(1);
/// After so long without an event a job is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(10);

/// The latest that one job has said. Nobody listens any more once this is dropped.
#[derive(Debug)]
pub struct Feed {
    heard: watch::Receiver<Heard>,
    owned: watch::Sender<Owned>,
    /// How often it was to be asked.
    asks: watch::Sender<u64>,
    _task: AbortOnDropHandle<()>,
}

/// What was heard of a job.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// What it said last.
    pub progress: Option<Arc<Progress>>,
    /// Why it does not answer now.
    pub trouble: Option<Trouble>,
    /// How often it had news that cannot wait.
    pub urgent: u64,
    /// How often it had reached a target.
    pub reached: u64,
    /// The last time that it was to be asked, by number, of which something came.
    answered: u64,
}

/// Why a job does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In words.
    pub text: Arc<str>,
    /// Whether this is how an endpoint looks that is not up yet.
    pub may_pass: bool,
}

/// What a job is to reach by the word of others, of which it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Owned {
    /// The targets.
    pub targets: Targets,
    /// Which way its loss goes, where it is not to be asked.
    pub direction: Option<Direction>,
}

impl Feed {
    /// Listens to the endpoint that one of `ways` leads to. `nudge` is told of what cannot wait.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn follow(proc: PathBuf, ways: Vec<Way>, owned: Owned, nudge: Arc<Notify>) -> Self {
        let (sender, heard) = watch::channel(Heard::default());
        let judged = owned;
        let (owned, owned_by) = watch::channel(owned);
        let (asks, asked) = watch::channel(0);
        let nudges = Nudges::default();
        let listener =
            Listener { proc, ways, heard: sender, owned: owned_by, judged, asked, nudge, nudges };
        Self { heard, owned, asks, _task: AbortOnDropHandle::new(tokio::spawn(listener.run())) }
    }

    /// What was heard so far.
    pub fn heard(&self) -> Heard {
        self.heard.borrow().clone()
    }

    /// Has the job asked now, whether it has events or not.
    pub fn ask(&self) {
        self.asks.send_modify(|asks| *asks += 1);
    }

    /// Whether something has come of that, be it nothing good.
    pub fn has_answered(&self) -> bool {
        self.heard.borrow().answered == *self.asks.borrow()
    }

    /// The job is to reach something else from now on. It is asked at once where it stands: a policy
    /// judges by what a job says, and it may say nothing by itself for a while.
    pub fn own(&self, owned: Owned) {
        self.owned.send_replace(owned);
    }
}

struct Listener {
    proc: PathBuf,
    ways: Vec<Way>,
    heard: watch::Sender<Heard>,
    owned: watch::Receiver<Owned>,
    /// What it was to reach when it was last heard.
    judged: Owned,
    asked: watch::Receiver<u64>,
    nudge: Arc<Notify>,
    nudges: Nudges,
}

impl Listener {
    async fn run(mut self) {
        let began = Instant::now();
        let mut is_new = true;
        let mut events_at = Instant::now();
        let mut events_break = FIRST_BREAK;
        loop {
            let pause = match self.ask().await {
                Ok(()) => {
                    is_new = false;
                    let heard = Instant::now();
                    if heard >= events_at {
                        self.listen().await;
                        let lasted = heard.elapsed();
                        events_break = if lasted >= QUIET {
                            FIRST_BREAK
                        } else {
                            (events_break * 2).min(LONGEST_BREAK)
                        };
                        events_at = Instant::now() + events_break;
                    }
                    POLL
                }
                Err(error) => {
                    let may_begin = is_new && error.may_pass();
                    self.fail(error);
                    if may_begin { (began.elapsed() / LATE).clamp(EAGER, RETRY) } else { RETRY }
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.asked.changed() => {}
                _ = self.owned.changed() => {}
            }
        }
    }

    /// Asks once. The way that works is the first to be tried from then on.
    async fn ask(&mut self) -> Result<(), EndpointError> {
        let number = *self.asked.borrow_and_update();
        let answer = read(&self.proc, &self.ways).await;
        let came = answer.map(|(way, progress)| {
            self.ways.swap(0, way);
            self.hear(progress);
        });
        self.heard.send_modify(|heard| heard.answered = number);
        came
    }

    /// Follows the events until they end: asking then says what is wrong, if anything is.
    async fn listen(&mut self) {
        let Some(way) = self.ways.first() else { return };
        let Ok(mut events) = Events::open(&self.proc, way).await else { return };
        loop {
            let event = tokio::select! {
                event = timeout(QUIET, events.next()) => event.ok(),
                _ = self.asked.changed() => None,
                _ = self.owned.changed() => None,
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

    fn hear(&mut self, mut progress: Progress) {
        // Nobody reads it here, and it may be long.
        progress.sidecar = None;
        let before = self.heard.borrow().progress.clone();
        let owned = *self.owned.borrow();
        let ordered = std::mem::replace(&mut self.judged, owned) != owned;
        let before = before.as_deref();
        let urgent = ordered || before.is_none_or(|before| cannot_wait(before, &progress));
        let reached = before.is_some_and(|before| has_reached(before, &progress, owned));
        self.heard.send_modify(|heard| {
            heard.progress = Some(Arc::new(progress));
            heard.trouble = None;
            heard.urgent += u64::from(urgent);
            heard.reached += u64::from(reached);
        });
        // An order is no whim of the job's.
        if ordered || ((urgent || reached) && self.nudges.take(Instant::now())) {
            self.nudge.notify_one();
        }
    }

    fn fail(&mut self, error: EndpointError) {
        let may_pass = error.may_pass();
        let text = format!("{:#}", anyhow::Error::from(error)).into();
        self.heard.send_modify(|heard| heard.trouble = Some(Trouble { text, may_pass }));
    }
}

/// Whether something has happened that any policy may act on at once: the job has begun to report or has
/// ended or is another, or a checkpoint has ended.
fn cannot_wait(before: &Progress, now: &Progress) -> bool {
    let (then, new) = (&before.checkpoint, &now.checkpoint);
    before.instance != now.instance
        || (is_starting(before) && !is_starting(now))
        || (has_ended(now) && !has_ended(before))
        || (then.answered, then.saved) != (new.answered, new.saved)
}

/// Whether the job has reached a target, by its own word or, of one that it does not know of, by its loss.
fn has_reached(before: &Progress, now: &Progress, owned: Owned) -> bool {
    let direction = owned.direction.unwrap_or(now.eval.direction);
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
        || crossed(owned.targets.acceptable)
        || crossed(owned.targets.objective)
}

fn is_starting(progress: &Progress) -> bool {
    progress.state == State::Starting
}

fn has_ended(progress: &Progress) -> bool {
    matches!(progress.state, State::Finished | State::Failed)
}

#[cfg(test)]
mod tests;
