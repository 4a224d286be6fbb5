//! What a handle and the server share: who the job is and how far it has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use paceline_wire::{Cpu, Direction, Progress, Reached, SCHEMA, Signals, State};

use crate::bell::Bell;
use crate::checkpoint::Book;
use crate::doing::{NowDoing, Task};
use crate::hot::clock::{Clock, Moment};
use crate::hot::histogram::Counts;
use crate::hot::ledger::{Entry, FirstReached, Ledger};
use crate::instance;
use crate::later::Later;
use crate::settings::Settings;

/// What [`Progress::source`] says of this crate.
const SOURCE: &str = "reporter";
/// [`Job::ending`] of a job that goes on.
const ENDLESS: u8 = 0;
/// [`Job::ending`] of a job that ended as it meant to.
const FINISHED: u8 = 1;
/// [`Job::ending`] of a job that ended by an error.
const FAILED: u8 = 2;

/// A job that reports.
#[derive(Debug)]
pub(crate) struct Job {
    settings: Settings,
    pid: u32,
    instance: String,
    ledger: Ledger,
    /// What the job's own count of steps is ahead of the reports.
    ahead: AtomicI64,
    /// 0 before the first.
    epoch: AtomicU64,
    /// 0 if it is not known.
    total_steps: AtomicU64,
    ending: AtomicU8,
    doing: NowDoing,
    checkpoints: Book,
    stop: Arc<AtomicBool>,
    later: Later,
    bell: Bell,
}

impl Job {
    /// A job that starts now, and rings the bell when something should be known at once.
    pub(crate) fn new(settings: Settings, bell: Bell) -> Self {
        let Settings { direction, targets, window, first_step, total_steps, .. } = settings;
        let clock = Clock::start();
        let resumed = settings.resumed.as_deref();
        Self {
            pid: std::process::id(),
            instance: instance::new(clock.began_since_epoch()),
            ahead: AtomicI64::new(signed(first_step)),
            epoch: AtomicU64::new(resumed.and_then(|before| before.epoch).unwrap_or(0)),
            total_steps: AtomicU64::new(total_steps.unwrap_or(0)),
            ledger: Ledger::new(clock, direction, targets, window),
            ending: AtomicU8::new(ENDLESS),
            doing: NowDoing::default(),
            checkpoints: Book::default(),
            stop: Arc::default(),
            later: Later::default(),
            bell,
            settings,
        }
        .after_resuming()
    }

    /// Takes over what an earlier process had come to.
    fn after_resuming(self) -> Self {
        if let Some(before) = self.settings.resumed.as_deref() {
            self.ledger.resume(before);
            self.set_step(before.step.unwrap_or(0));
        }
        self
    }

    /// What has been reported.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was asked for and saved.
    pub(crate) fn checkpoints(&self) -> &Book {
        &self.checkpoints
    }

    /// How it is set.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Which way the loss is meant to go.
    pub(crate) fn direction(&self) -> Direction {
        self.settings.direction
    }

    /// The flag that tells the loop to stop.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Where losses go that are not known yet.
    pub(crate) fn later(&self) -> &Later {
        &self.later
    }

    /// Whether this is the process that the job was started in, and not a fork of it.
    pub(crate) fn is_at_home(&self) -> bool {
        std::process::id() == self.pid
    }

    /// Enters a batch that ends now. One call from wherever a loop is, all of it in one piece.
    #[inline(never)]
    pub(crate) fn end_batch(&self, began: Moment, loss: Option<f64>) {
        let now = Clock::now();
        self.enter(Entry { loss, took: Some(now.since(began)) }, now);
    }

    /// Enters a report.
    #[inline]
    pub(crate) fn enter(&self, entry: Entry, now: Moment) {
        self.follow(self.ledger.enter(entry, now));
    }

    /// Enters the losses of steps that became known together.
    pub(crate) fn enter_losses(&self, losses: &[f64], now: Moment) {
        self.follow(self.ledger.enter_losses(losses, now));
    }

    #[inline]
    fn follow(&self, reached: FirstReached) {
        if reached.acceptable || reached.objective {
            self.target_reached(reached);
        }
    }

    /// Happens twice in a job's life: once for each target.
    #[cold]
    fn target_reached(&self, reached: FirstReached) {
        // A fork that trains on has a count of its own, and nobody to tell.
        if !self.is_at_home() {
            return;
        }
        if reached.acceptable {
            self.checkpoints.ask_to_keep();
        }
        if reached.objective && self.settings.stop_at_objective {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.ring();
    }

    /// Wakes the reporter's thread.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// One more end of the bell.
    #[cfg(feature = "sigterm")]
    pub(crate) fn bell(&self) -> std::io::Result<std::os::unix::net::UnixStream> {
        self.bell.another()
    }

    /// Sets the epoch, counted from 1.
    pub(crate) fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Sets how many steps there are to be.
    pub(crate) fn set_total_steps(&self, steps: u64) {
        self.total_steps.store(steps, Ordering::Relaxed);
    }

    /// Says which step has been reached; further reports count on from there.
    pub(crate) fn set_step(&self, step: u64) {
        let ahead = signed(step).saturating_sub(signed(self.ledger.steps()));
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    /// The step that has been reached.
    pub(crate) fn step(&self) -> u64 {
        self.step_after(self.ledger.steps())
    }

    fn step_after(&self, reports: u64) -> u64 {
        reports.saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    /// What the loop is at.
    pub(crate) fn doing(&self) -> Task {
        self.doing.get()
    }

    /// Says what the loop is at.
    pub(crate) fn set_doing(&self, task: Task) {
        self.doing.set(task);
    }

    /// Says how the job ended, unless that has been said.
    pub(crate) fn end(&self, well: bool) {
        let ending = if well { FINISHED } else { FAILED };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // A refusal means that the ending was said before.
        if self.ending.compare_exchange(ENDLESS, ending, set, fetch).is_ok() {
            self.ring();
        }
    }

    /// Wall time, as this job stamps it.
    pub(crate) fn unix_now(&self) -> f64 {
        let clock = self.ledger.clock();
        clock.unix(clock.elapsed())
    }

    /// How far the job has come, with the counts of durations that only the metrics show.
    ///
    /// What is derived or read elsewhere, `signals`, `cpu` and `sidecar`, is left at its default.
    pub(crate) fn read(&self) -> (Progress, Counts) {
        let Settings { job, loss_name, window, targets, dataset, rank, .. } = &self.settings;
        let reading = self.ledger.read(loss_name, *window);
        let known =
            |count: &AtomicU64| Some(count.load(Ordering::Relaxed)).filter(|count| *count > 0);
        let clock = self.ledger.clock();
        let step = self.step_after(reading.steps);
        let resumed = self.settings.resumed.as_deref();
        let before = resumed.map(|before| before.reached).unwrap_or_default();
        let progress = Progress {
            schema: SCHEMA,
            job: job.clone(),
            pid: self.pid,
            instance: self.instance.clone(),
            source: self.settings.source.as_deref().unwrap_or(SOURCE).to_owned(),
            state: self.state(reading.steps > 0 || reading.latency.count > 0),
            started_at: clock.unix(Duration::ZERO),
            now: clock.unix(clock.elapsed()),
            step: (step > 0).then_some(step),
            epoch: known(&self.epoch),
            total_steps: known(&self.total_steps),
            expected_steps: None,
            dataset: dataset.clone(),
            eval: reading.eval,
            batch_latency: reading.latency,
            targets: *targets,
            reached: Reached {
                acceptable_at: before.acceptable_at.or(reading.reached.acceptable_at),
                objective_at: before.objective_at.or(reading.reached.objective_at),
            },
            checkpoint: self.checkpoints.read(),
            validation: reading.validation,
            signals: Signals::default(),
            cpu: Cpu::default(),
            rank: *rank,
            sidecar: None,
            dropped: reading.dropped,
            rejected: reading.rejected,
        };
        (progress, reading.durations)
    }

    fn state(&self, has_begun: bool) -> State {
        match self.ending.load(Ordering::Relaxed) {
            FINISHED => State::Finished,
            FAILED => State::Failed,
            _ if has_begun => State::Running,
            _ => State::Starting,
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
