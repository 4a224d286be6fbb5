//! The live loop: observe, let the engine decide, obey it.
//!
//! One task owns all state. What wakes it is a timer, the engine's events, a job's, an order, a
//! write that is done, or a signal; each only says that it is time to look or to go on, and what is
//! then done depends on what is seen alone. Nothing that may take its time is waited for in between:
//! endpoints are listened to by tasks of their own ([`crate::observe::endpoint`]), and so are
//! surveys of the engine (`survey`) and writes (`hands`).

mod candidate;
mod engine_events;
mod figures;
mod hands;
mod heirs;
mod judge;
mod looks;
mod moving;
mod names;
mod orders;
mod publish;
mod renewal;
mod roster;
mod settle;
mod survey;
mod tally;
mod targets;
mod timing;

use std::sync::Arc;
use std::time::Duration;

use paceline_policy::{AnyEngine, Event, JobId, Moment, Shadow};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::info;

use crate::actuate::Actuator;
use crate::audit::{Audit, Entry};
use crate::clock::Clock;
use crate::json_lines::JsonLines;
use crate::live::Backstage;
use crate::migrate::containers::OneMachine;
use crate::migrate::mover::{Mover, came};
use crate::migrate::moves::Moves;
use crate::signals::Ending;
use engine_events::{EngineEvents, Touched};
use hands::Hands;
use publish::Decided;
use tally::Tally;
use timing::Timing;

pub use orders::{Hook, Hooks};
pub use renewal::Renewal;
pub use roster::Roster;

/// What happens within this time is one change.
const COALESCE: Duration = Duration::from_millis(20);
/// How often it is seen whether all endpoints have answered that were asked, in seconds.
const CHECK: f64 = 0.005;
/// Runs of the policy that follow each other sooner, in seconds, have no look between them for sure:
/// which batches began after the one and ended before the other is told by asking halfway, where that
/// is held against a target …
const SOON: f64 = 2.0;
/// … and by looking so much later.
const ANSWER: f64 = 0.05;

/// One machine under one policy.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    timing: Timing,
    engine: AnyEngine,
    roster: Roster,
    /// `None` in a dry run: everything is decided, nothing is written.
    hands: Option<Hands>,
    /// Jobs on their way to another node; `None` where nothing is written.
    moves: Option<Moves<OneMachine>>,
    /// Jobs on their way to their end: that takes as long as they take.
    endings: JoinSet<()>,
    records: Records,
    stage: Backstage,
    hooks: Hooks,
    renewals: mpsc::Receiver<Renewal>,
    shadows: Vec<Shadow>,
    tally: Tally,
    decided: Option<Decided>,
    node_used: Option<(Moment, f64)>,
    node_cpu: Option<f64>,
    /// When a run of the policy is due before its time.
    decide_at: Option<Moment>,
    refresh_at: Moment,
    /// Known containers are to be looked at again.
    touched: Touched,
    reconcile_at: Moment,
    look_at: Moment,
    decided_at: Option<Moment>,
    /// When to look for what cannot wait.
    hurry_at: Option<Moment>,
    wake_at: Option<Moment>,
    /// When to ask between two runs of the policy.
    halfway_at: Option<Moment>,
    asking: Option<Asking>,
}

/// Endpoints have been asked for a run of the policy.
#[derive(Clone, Copy, Debug)]
struct Asking {
    check_at: Moment,
    until: Moment,
}

/// Where a run leaves its records.
#[derive(Debug, Default)]
pub struct Records {
    /// One line for each run of the policy.
    pub frames: Option<JsonLines>,
    /// One line for each look.
    pub samples: Option<JsonLines>,
    /// All that was done and why.
    pub audit: Option<Audit>,
}

impl Driver {
    /// A driver that starts when it is run.
    pub fn new(
        engine: impl Into<AnyEngine>,
        roster: Roster,
        actuator: Option<Actuator>,
        records: Records,
        stage: Backstage,
    ) -> Self {
        let clock = Clock::start();
        Self {
            clock,
            timing: Timing::default(),
            engine: engine.into(),
            roster,
            hands: actuator.map(|actuator| Hands::new(Arc::new(actuator), clock)),
            moves: None,
            endings: JoinSet::new(),
            records,
            stage,
            hooks: Hooks::default(),
            // Whoever renews nothing has let go of the other end.
            renewals: mpsc::channel(1).1,
            shadows: Vec::new(),
            tally: Tally::default(),
            decided: None,
            node_used: None,
            node_cpu: None,
            decide_at: None,
            refresh_at: Moment::default(),
            touched: Touched::Any,
            reconcile_at: Moment::default(),
            look_at: Moment::default(),
            decided_at: None,
            hurry_at: None,
            wake_at: None,
            halfway_at: None,
            asking: None,
        }
    }

    /// Policies that watch and do not act.
    #[must_use]
    pub fn shadowed_by(self, shadows: Vec<Shadow>) -> Self {
        Self { shadows, ..self }
    }

    /// Who answers orders that are not the driver's own business.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Runs until a signal comes, then puts every limit back.
    pub async fn run(
        mut self,
        mut ending: watch::Receiver<Option<Ending>>,
    ) -> anyhow::Result<Ending> {
        self.began();
        let events = EngineEvents::follow(self.roster.docker().clone());
        let nudge = self.roster.nudge();
        let ended = loop {
            // It goes off at the next whole millisecond: what comes together is one change.
            let timer = self.clock.instant(self.next());
            // Everything that is waited for here can be given up without losing anything.
            tokio::select! {
                biased;
                ended = async { ending.wait_for(Option::is_some).await.ok().and_then(|e| *e) } => {
                    break ended.unwrap_or(Ending::Terminated);
                }
                Some(order) = self.stage.orders.recv() => {
                    self.serve(order).await;
                    events.adopt(self.roster.adopted());
                }
                Some(renewal) = self.renewals.recv() => self.renew(renewal),
                done = done(&mut self.hands) => self.settle(done),
                came = came(&mut self.moves) => {
                    self.moved(came);
                    events.adopt(self.roster.adopted());
                }
                () = nudge.notified() => self.look_soon(),
                survey = self.roster.surveyed() => self.compare(survey),
                () = events.changed() => {
                    let soon = self.clock.now().after(COALESCE.as_secs_f64());
                    self.refresh_at = self.refresh_at.min(soon);
                }
                () = tokio::time::sleep_until(timer) => self.turn(&events),
            }
        };
        drop(events);
        self.end_moves().await;
        let left = self.restore_all().await?;
        self.write(&Entry::Ended { left: u64::try_from(left).unwrap_or(u64::MAX) });
        anyhow::ensure!(
            left == 0,
            "the limits of {left} containers were not put back: `paceline restore` tries again"
        );
        if self.hands.is_some() {
            info!("every limit is back");
        }
        Ok(ended)
    }

    /// When something is due by itself.
    fn next(&self) -> Moment {
        let wake_at = self.asking.map(|asking| asking.check_at).or(self.wake_at);
        // While they gather, nobody is decided about.
        let decide_at = self.decide_at.filter(|_| !self.gathers());
        let due = [self.hurry_at, decide_at, wake_at, self.halfway_at].into_iter().flatten();
        due.fold(self.refresh_at.min(self.look_at), Moment::min)
    }

    /// One turn of the loop: whatever is due.
    fn turn(&mut self, events: &EngineEvents) {
        let now = self.clock.now();
        if now >= self.refresh_at {
            self.refresh(now, events.take());
        }
        let past = |now: Moment, at: Option<Moment>| at.is_some_and(|at| now >= at);
        if past(now, self.halfway_at) {
            self.halfway_at = None;
            if self.engine.awaits_batches() {
                self.roster.ask_all();
                self.look_by(now.after(ANSWER));
            }
        }
        let (gathers, due, whole) = (self.gathers(), self.is_due(now), now >= self.look_at);
        if !(whole || due || past(now, self.hurry_at) || (past(now, self.decide_at) && !gathers)) {
            return;
        }
        self.hurry_at = None;
        self.look(now, whole);
        if gathers && due {
            self.asking = None;
        }
        let decide = if gathers {
            due && self.decide_at.is_some()
        } else {
            due || past(self.clock.now(), self.decide_at)
        };
        if decide {
            (self.decide_at, self.decided_at) = (None, Some(now));
            let changes = self.judge(Event::Decide);
            self.apply(changes);
        } else if self.hands.is_some() {
            let changes = self.judge(Event::Look);
            self.apply(changes);
        }
        self.publish();
    }

    /// Looks and decides as soon as may be.
    fn hurry(&mut self) {
        let at = self.soonest();
        self.decide_at = Some(self.decide_at.map_or(at, |before| before.min(at)));
    }

    /// Looks as soon as may be; a decision follows if there is something new.
    fn look_soon(&mut self) {
        self.look_by(self.soonest());
    }

    fn look_by(&mut self, at: Moment) {
        self.hurry_at = Some(self.hurry_at.map_or(at, |before| before.min(at)));
    }

    /// At once, unless a decision was made a moment ago.
    fn soonest(&self) -> Moment {
        let now = self.clock.now();
        self.decided_at.map_or(now, |at| at.after(COALESCE.as_secs_f64()).max(now))
    }

    /// Has every endpoint asked; the policy runs when all have answered or it takes too long.
    fn ask_all(&mut self, now: Moment) {
        self.roster.ask_all();
        let (check_at, until) = (now.after(CHECK), now.after(self.timing.answers.as_secs_f64()));
        self.asking = Some(Asking { check_at, until });
    }

    /// Whether those that ran before this run are yet to answer: they come together, however long
    /// each takes, or a policy would take all others for newcomers beside the first.
    fn gathers(&self) -> bool {
        self.decided_at.is_none() && self.asking.is_some()
    }

    /// Whether the policy is to run by itself, and by what every job says now.
    fn is_due(&mut self, now: Moment) -> bool {
        if let Some(asking) = &mut self.asking {
            asking.check_at = now.after(CHECK);
            return now >= asking.until || self.roster.has_answered();
        }
        if self.wake_at.is_some_and(|wake| now >= wake) {
            self.ask_all(now);
        }
        false
    }

    fn began(&mut self) {
        let first = Arc::clone(&self.stage.snapshots.borrow());
        self.write(&Entry::Began {
            version: first.version.clone(),
            pid: first.pid,
            policy: first.policy.name.clone(),
            actuator: first.policy.actuator.clone(),
            dry_run: first.policy.dry_run,
        });
    }

    fn write(&mut self, entry: &Entry) {
        if let Some(audit) = &mut self.records.audit {
            audit.write(entry);
        }
    }
}

/// What was written, for ever to come in a dry run.
async fn done(hands: &mut Option<Hands>) -> hands::Done {
    match hands {
        Some(hands) => hands.done().await,
        None => std::future::pending().await,
    }
}

/// A container's id as people write it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// What a container is called where it has no job's name of its own.
pub(crate) fn job_id(name: &str, id: &str) -> JobId {
    JobId::new(name).or_else(|_| JobId::new(short(id))).expect("a container has an id")
}

#[cfg(test)]
mod tests;
