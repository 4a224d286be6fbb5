//! The live loop: observe, let the engine decide, obey it.
//!
//! One task owns all state. What wakes it is a timer, the engine's events, or a signal; each only
//! says that it is time to look, and what is then done depends on what is seen alone.

mod candidate;
mod engine_events;
mod roster;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use paceline_policy::limiter::Change;
use paceline_policy::{Decision, Effect, Engine, Event, Frame, JobId, Moment};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::actuate::{Actuator, LimitError, Restored};
use crate::clock::{Clock, unix_seconds};
use crate::json_lines::JsonLines;
use crate::observe::node;
use crate::samples::{Sample, SampleNode};
use crate::signals::Ending;
use candidate::Seen;
use engine_events::EngineEvents;

pub use roster::Roster;

/// How often jobs are looked at. Policies run less often, by their own interval.
const LOOK: Duration = Duration::from_secs(1);
/// How often the list of containers is compared, events or not: an event can be lost.
const RECONCILE: Duration = Duration::from_secs(10);
/// What happens within this time is one change.
const COALESCE: Duration = Duration::from_millis(20);
/// How many limits are written at once.
const WRITERS: usize = 4;
/// How long a job at its objective has to end by itself, in seconds.
const END_PATIENCE: i32 = 30;
/// How long putting back one container's limits may take.
const RESTORE_PATIENCE: Duration = Duration::from_secs(20);

/// One node under one policy.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    engine: Engine,
    cpus: f64,
    roster: Roster,
    /// `None` in a dry run: everything is decided, nothing is written.
    actuator: Option<Arc<Actuator>>,
    /// Jobs on their way to their end: that takes as long as they take.
    endings: JoinSet<()>,
    frames: Option<JsonLines>,
    samples: Option<JsonLines>,
    node_used: Option<(Moment, f64)>,
    /// Whether a policy run is due before its time.
    changed: bool,
    refresh_at: Moment,
    look_at: Moment,
    wake_at: Option<Moment>,
}

/// Where a run leaves its records.
#[derive(Debug, Default)]
pub struct Records {
    /// One line for each run of the policy.
    pub frames: Option<JsonLines>,
    /// One line for each look.
    pub samples: Option<JsonLines>,
}

impl Driver {
    /// A driver that starts when it is run.
    pub fn new(
        engine: Engine,
        roster: Roster,
        actuator: Option<Actuator>,
        records: Records,
    ) -> Self {
        Self {
            clock: Clock::start(),
            engine,
            cpus: roster.cpus(),
            roster,
            actuator: actuator.map(Arc::new),
            endings: JoinSet::new(),
            frames: records.frames,
            samples: records.samples,
            node_used: None,
            changed: false,
            refresh_at: Moment::default(),
            look_at: Moment::default(),
            wake_at: None,
        }
    }

    /// Runs until a signal comes, then puts every limit back.
    pub async fn run(
        mut self,
        mut ending: watch::Receiver<Option<Ending>>,
    ) -> anyhow::Result<Ending> {
        let mut events = EngineEvents::follow(self.roster.docker().clone());
        let ended = loop {
            let next =
                self.wake_at.into_iter().fold(self.refresh_at.min(self.look_at), Moment::min);
            tokio::select! {
                biased;
                // Cancel safe: a watch keeps its value.
                ended = ending.wait_for(Option::is_some) => {
                    break ended.ok().and_then(|ended| *ended).unwrap_or(Ending::Terminated);
                }
                // Cancel safe: a notification that is not taken stays.
                () = events.changed() => {
                    let soon = self.clock.now().after(COALESCE.as_secs_f64());
                    self.refresh_at = self.refresh_at.min(soon);
                }
                () = tokio::time::sleep_until(self.clock.instant(next)) => self.turn().await,
            }
        };
        drop(events);
        self.restore_all().await?;
        Ok(ended)
    }

    /// One turn of the loop: whatever is due.
    async fn turn(&mut self) {
        let now = self.clock.now();
        if now >= self.refresh_at {
            self.refresh_at = now.after(RECONCILE.as_secs_f64());
            self.refresh().await;
        }
        let due = self.changed || self.wake_at.is_some_and(|wake| now >= wake);
        let looked = due || now >= self.look_at;
        if looked {
            self.look().await;
            self.look_at = self.clock.now().after(LOOK.as_secs_f64());
        }
        if due || self.changed {
            self.changed = false;
            self.obey(Event::Decide).await;
        } else if looked && self.actuator.is_some() {
            self.obey(Event::Look).await;
        }
    }

    /// Compares the list of containers with the one before.
    async fn refresh(&mut self) {
        let change = match self.roster.refresh().await {
            Ok(change) => change,
            Err(error) => {
                warn!("the engine does not list its containers: {:#}", anyhow::Error::from(error));
                return;
            }
        };
        for (container, job) in change.gone {
            if let Some(job) = job {
                info!(%job, "job is gone");
                self.tell(Event::Gone(job));
                self.changed = true;
            }
            // A container that only stopped would come back with our limit.
            self.restore(&container).await;
        }
    }

    /// Reads every container, and tells the engine.
    async fn look(&mut self) {
        let now = self.clock.now();
        let before = self.node_used;
        self.node_used = node::used_seconds(self.roster.proc()).ok().map(|used| (now, used));
        if let Some((_, used)) = self.node_used {
            self.tell(Event::NodeUsed(used));
        }
        let (seen, jobs) = self.roster.look(&self.clock).await;
        for seen in seen {
            match seen {
                Seen::Appeared(spec) => {
                    info!(job = %spec.id, "job appeared");
                    self.tell(Event::Appeared(*spec));
                    self.changed = true;
                }
                Seen::Event(event) => self.tell(event),
            }
        }
        let cpu = before.zip(self.node_used).and_then(|((from, before), (to, used))| {
            let seconds = to.seconds_since(from);
            (seconds > 0.0).then(|| (used - before) / seconds / self.cpus)
        });
        if let Some(samples) = &mut self.samples {
            let node = SampleNode { cpus: self.cpus, cpu };
            samples.write(&Sample { t: now.seconds(), unix: unix_seconds(), node, jobs });
        }
    }

    fn tell(&mut self, event: Event) {
        let effects = self.engine.step(self.clock.now(), event);
        debug_assert!(effects.is_empty(), "only a look and a decision have effects");
    }

    /// Lets the engine judge, and does what it says.
    async fn obey(&mut self, event: Event) {
        let mut changes = Vec::new();
        for effect in self.engine.step(self.clock.now(), event) {
            match effect {
                Effect::Decided(decided) => self.record(&decided.0, &decided.1),
                Effect::Set(set) => changes = set,
                Effect::End(done) => done.iter().for_each(|job| self.end(job)),
                Effect::WakeAt(moment) => self.wake_at = Some(moment),
            }
        }
        // Decreases stand first; all of them are through before the first increase.
        let (grow, shrink): (Vec<_>, Vec<_>) = changes.into_iter().partition(Change::grows);
        self.apply(shrink).await;
        self.apply(grow).await;
    }

    fn record(&mut self, frame: &Frame, decision: &Decision) {
        if let Some(frames) = &mut self.frames {
            frames.write(frame);
        }
        for (job, of) in &decision.jobs {
            let limit = decision.limits.get(job).map(ToString::to_string).unwrap_or_default();
            tracing::debug!(%job, class = of.class, limit, why = %of.why, "decided");
        }
    }

    async fn apply(&mut self, changes: Vec<Change>) {
        let Some(actuator) = &self.actuator else {
            for Change { job, from, to, why } in changes {
                info!(%job, "dry run: would change the limit from {from} to {to}: {why}");
            }
            return;
        };
        let roster = &self.roster;
        let write = |change: Change| async move {
            let id = roster.container(&change.job)?;
            Some((actuator.set(id, change.to).await, change))
        };
        let written: Vec<_> =
            futures_util::stream::iter(changes).map(write).buffered(WRITERS).collect().await;
        for (answer, Change { job, from, to, why }) in written.into_iter().flatten() {
            match answer {
                Ok(in_force) => {
                    info!(%job, "limit {from} -> {in_force}: {why}");
                    self.tell(Event::Applied(job, in_force));
                }
                // Its going is noticed by the next refresh.
                Err(LimitError::Gone(_)) => {}
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    warn!(%job, "limit stays {from}, not {to}: {error:#}");
                }
            }
        }
    }

    /// Begins to end a job that has reached its objective.
    fn end(&mut self, job: &JobId) {
        let Some(actuator) = self.actuator.clone() else {
            info!(%job, "dry run: would end it, it is at its objective");
            return;
        };
        let Some(id) = self.roster.container(job).map(str::to_owned) else { return };
        info!(%job, "at its objective: it is ended");
        let job = job.clone();
        self.endings.spawn(async move {
            if let Err(error) = actuator.end(&id, END_PATIENCE).await {
                warn!(%job, "it was not ended: {:#}", anyhow::Error::from(error));
            }
        });
    }

    /// Puts one container's limits back; says so when that fails.
    async fn restore(&self, container: &str) -> bool {
        let Some(actuator) = &self.actuator else { return true };
        let restored = tokio::time::timeout(RESTORE_PATIENCE, actuator.restore(container)).await;
        match restored {
            Ok(Ok(None | Some(Restored::Gone))) => true,
            Ok(Ok(Some(restored))) => {
                info!("limits of container {}: {restored}", short(container));
                true
            }
            Ok(Err(error)) => {
                warn!("{:#}", anyhow::Error::from(error));
                false
            }
            Err(_) => {
                warn!("limits of container {} were not put back in time", short(container));
                false
            }
        }
    }

    async fn restore_all(&self) -> anyhow::Result<()> {
        let Some(actuator) = &self.actuator else { return Ok(()) };
        let pending = actuator.pending().context("the original limits cannot be read")?;
        let restored: Vec<bool> = futures_util::stream::iter(&pending)
            .map(|id| self.restore(id))
            .buffered(WRITERS)
            .collect()
            .await;
        let left = restored.iter().filter(|restored| !**restored).count();
        anyhow::ensure!(
            left == 0,
            "the limits of {left} containers were not put back: `paceline restore` tries again"
        );
        info!("every limit is back");
        Ok(())
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
