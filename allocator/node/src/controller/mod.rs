//! The live loop: sample, let the decision engine decide, write its limits.
//!
//! One task owns all state. It is woken by a timer, an order, a finished write, a signal, or an event
//! of the container engine or of a job. A wake-up carries no state: the loop then samples, and
//! reconciles what it finds with what is wanted. The loop never waits for slow work.
//! Endpoints have tasks of their own ([`crate::endpoint`]), as have surveys of the container engine
//! (`survey`) and writes (`write_queue`).
//!
//! The `timetable` decides when to survey, sample, ask endpoints and run the policy. `decide`
//! executes the effects of the decision engine. Tasks do whatever takes time, so an order is served
//! within milliseconds. The `write_queue` writes once at a time for each container, keeps increases
//! behind the decreases of the same decision, and puts orders first.
//!
//! A container is a candidate until its job reports or an order pins it. It is managed as well once
//! its endpoint has answered for 15 seconds without a report. An endpoint answers before training
//! starts, so an answer alone is not enough: whether the first frame has a loss would then depend on
//! chance.
//!
//! A job can start a sample and a decision at once: by its first report, a reached target, its end
//! or a saved checkpoint. Each job can do so four times in a row, then once a second. Events within
//! 20 ms are one change. A policy that ignores targets (FlowCon) is not run for them. Jobs that ran
//! before the allocator are one frame, once all have answered: a policy sees a difference between
//! frames as a difference between jobs.
//!
//! Samples are due at whole seconds of the run, and a late one does not move the next. Where runs of
//! the policy are less than two seconds apart, jobs with a target for their batches are also sampled
//! halfway. Only that shows which batches began after one run and ended before the next.
//!
//! The controller runs on the main thread. The kernel reserves 10 ms of a CPU in each 20 ms for it
//! (`SCHED_DEADLINE`), which also bounds what it takes from the jobs. A snapshot shows the limit of
//! the last sample, or of a later write. `reload` applies checked settings; where caps and weights
//! replace each other, it first restores what was written.

mod adoptions;
mod commands;
mod decide;
mod endings;
mod engine_events;
mod figures;
mod ingest;
mod inventory;
mod moving;
mod names;
mod publish;
mod recorder;
mod reload;
mod replacements;
mod results;
mod shadow;
mod survey;
mod tally;
mod targets;
mod timetable;
mod timing;
mod watched;
mod write_queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use paceline_api::audit::{Audit, Entry};
use paceline_api::clock::Clock;
use paceline_api::json_lines::JsonLines;
use paceline_api::live::DaemonChannels;
use paceline_api::live::snapshot::Standing;
use paceline_api::service_manager::ServiceManager;
use paceline_api::signals::Ending;
use paceline_policy::{AnyEngine, Event, JobId, Moment};
use paceline_runtime::short;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::info;

use crate::limits::Actuator;
use crate::migration::containers::OneMachine;
use crate::migration::mover::{MigrationHost, next_event};
use crate::migration::moves::MigrationQueue;
use adoptions::Adoptions;
use endings::Endings;
use engine_events::{EngineEvents, Touched};
use recorder::Recorder;
use tally::Tally;
use timetable::{Inputs, Timetable};
use timing::Timing;
use write_queue::WriteQueue;

pub use commands::{Hook, Hooks};
pub use inventory::Inventory;
pub use reload::NewSettings;
pub use shadow::Shadow;

/// How long moves and jobs that are being ended may take at the end of a run. After that, limits are
/// restored, and service managers kill a program after 90 s.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// One machine under one policy.
#[derive(Debug)]
pub struct Controller {
    clock: Clock,
    timetable: Timetable,
    engine: AnyEngine,
    inventory: Inventory,
    /// `None` in a dry run: limits are decided and not written.
    writes: Option<WriteQueue>,
    /// Jobs that are being moved to another node; `None` if jobs are not moved, as in a dry run.
    moves: Option<MigrationQueue<OneMachine>>,
    adoptions: Adoptions,
    endings: Endings,
    recorder: Recorder,
    channels: DaemonChannels,
    hooks: Hooks,
    renewals: mpsc::Receiver<NewSettings>,
    tally: Tally,
    node_used: Option<(Moment, f64)>,
    node_cpu: Option<f64>,
    /// Known containers that the next survey describes again.
    touched: Touched,
    service_manager: ServiceManager,
    /// Why the limits of containers could not be restored, by container.
    unrestored: BTreeMap<String, String>,
}

/// The files in which a run is recorded.
#[derive(Debug, Default)]
pub struct Records {
    /// One line for each run of the policy.
    pub frames: Option<JsonLines>,
    /// One line for each sample.
    pub samples: Option<JsonLines>,
    /// What the allocator did and why.
    pub audit: Option<Audit>,
}

impl Controller {
    /// A controller, which starts with [`Self::run`].
    pub fn new(
        engine: impl Into<AnyEngine>,
        inventory: Inventory,
        actuator: Option<Actuator>,
        records: Records,
        channels: DaemonChannels,
    ) -> Self {
        let clock = Clock::start();
        let actuator = actuator.map(Arc::new);
        Self {
            clock,
            timetable: Timetable::new(Timing::default()),
            engine: engine.into(),
            inventory: inventory.asking(actuator.clone()),
            writes: actuator.map(|actuator| WriteQueue::new(actuator, clock)),
            moves: None,
            adoptions: Adoptions::default(),
            endings: Endings::default(),
            recorder: Recorder::new(records),
            channels,
            hooks: Hooks::default(),
            // The sender is dropped: without [`Self::with_reloads`] no settings come.
            renewals: mpsc::channel(1).1,
            tally: Tally::default(),
            node_used: None,
            node_cpu: None,
            touched: Touched::Any,
            service_manager: ServiceManager::default(),
            unrestored: BTreeMap::new(),
        }
    }

    /// Adds shadow policies, whose decisions are recorded and never applied.
    #[must_use]
    pub fn shadowed_by(mut self, shadows: Vec<Shadow>) -> Self {
        self.recorder.watch_by(shadows);
        self
    }

    /// Adds handlers of orders that do not concern the controller's own state.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Adds the service manager that waits for signs of life.
    #[must_use]
    pub fn served_by(self, service_manager: ServiceManager) -> Self {
        Self { service_manager, ..self }
    }

    /// Runs until a signal comes, then restores every limit.
    pub async fn run(
        mut self,
        mut ending: watch::Receiver<Option<Ending>>,
    ) -> anyhow::Result<Ending> {
        self.began();
        let events = EngineEvents::follow(self.inventory.runtime().clone());
        let wake = self.inventory.wake();
        let ended = loop {
            // The timer has a resolution of one millisecond.
            let due =
                self.service_manager.due().into_iter().fold(self.timetable.next(), Moment::min);
            let timer = self.clock.instant(due);
            // Every future here can be dropped without losing anything.
            tokio::select! {
                biased;
                ended = async { ending.wait_for(Option::is_some).await.ok().and_then(|e| *e) } => {
                    break ended.unwrap_or(Ending::Terminated);
                }
                described = self.adoptions.described() => {
                    self.described_for_order(described);
                    events.adopt(self.inventory.adopted());
                }
                Some(order) = self.channels.orders.recv(), if self.adoptions.have_room() => {
                    self.serve(order);
                    events.adopt(self.inventory.adopted());
                }
                Some(renewal) = self.renewals.recv() => self.renew(renewal),
                done = done(&mut self.writes) => self.write_result(done),
                attempt = self.endings.done() => self.end_result(attempt),
                event = next_event(&mut self.moves) => {
                    self.moved(event);
                    events.adopt(self.inventory.adopted());
                }
                () = wake.notified() => self.timetable.sample_soon(self.clock.now()),
                survey = self.inventory.surveyed() => self.compare(survey),
                () = events.changed() => self.timetable.touched(self.clock.now()),
                () = tokio::time::sleep_until(timer) => self.turn(&events),
            }
        };
        self.service_manager.stopping("restores limits");
        drop(events);
        self.finish().await;
        let left = self.restore_all().await;
        self.recorder.write(&Entry::Ended { left: u64::try_from(left.len()).unwrap_or(u64::MAX) });
        anyhow::ensure!(
            left.is_empty(),
            "cannot restore the limits of {} containers ({}); run `paceline restore` to try again",
            left.len(),
            left.join(", ")
        );
        if self.writes.is_some() {
            info!("every limit is restored");
        }
        Ok(ended)
    }

    /// Ends what is under way, in a bounded time.
    async fn finish(&mut self) {
        self.refuse_waiting_orders();
        let deadline = Instant::now() + END_TIMEOUT;
        self.end_moves(deadline).await;
        self.finish_endings(deadline).await;
    }

    /// One turn of the loop: does what is due.
    fn turn(&mut self, events: &EngineEvents) {
        let now = self.clock.now();
        // It works once the engine has said which containers exist.
        if self.inventory.was_listed() {
            let status = self.status();
            self.service_manager.turn(now, &status);
        }
        let inputs = Inputs {
            answered: self.inventory.has_answered(),
            awaits_batches: self.engine.awaits_batches(),
        };
        let turn = self.timetable.turn(now, inputs);
        if turn.survey {
            self.refresh(now, events.take());
        }
        if turn.ask {
            self.inventory.ask_all();
        }
        let Some(sample) = turn.sample else { return };
        self.sample(now, sample.whole);
        if self.timetable.decides(sample, now, self.clock.now()) {
            self.step(Event::Decide);
        } else if self.writes.is_some() {
            self.step(Event::Tick);
        }
        self.publish();
    }

    /// One line for people who ask the service manager.
    fn status(&self) -> String {
        let standings = self.inventory.candidates().map(|(_, candidate)| candidate.standing);
        let managed = standings.filter(|standing| *standing == Standing::Managed).count();
        let policy = &self.channels.snapshots.borrow().policy;
        let dry_run = if policy.dry_run { ", dry run" } else { "" };
        format!("policy {}{dry_run}: {managed} managed jobs", policy.name)
    }

    /// Schedules a run of the policy as soon as possible.
    fn decide_soon(&mut self) {
        self.timetable.decide_soon(self.clock.now());
    }

    fn began(&mut self) {
        let first = Arc::clone(&self.channels.snapshots.borrow());
        self.recorder.write(&Entry::Began {
            version: first.version.clone(),
            pid: first.pid,
            policy: first.policy.name.clone(),
            actuator: first.policy.actuator.clone(),
            dry_run: first.policy.dry_run,
        });
    }
}

/// Waits for the next finished write; never returns in a dry run.
async fn done(writes: &mut Option<WriteQueue>) -> write_queue::Done {
    match writes {
        Some(writes) => writes.done().await,
        None => std::future::pending().await,
    }
}

/// A job's name from `name`, or from the container's short id if `name` is not a valid one; `None` if
/// neither is.
pub(crate) fn job_id(name: &str, id: &str) -> Option<JobId> {
    JobId::new(name).or_else(|_| JobId::new(short(id))).ok()
}

#[cfg(test)]
mod tests;
