//! What a handle and the server share: the job's settings and its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use paceline_wire::{Cpu, Direction, Progress, Reached, SCHEMA, Signals, State};

use crate::bell::Bell;
use crate::checkpoint_log::CheckpointLog;
use crate::doing::{NowDoing, Task};
use crate::hot::clock::{Clock, Moment};
use crate::hot::histogram::Counts;
use crate::hot::ledger::{Entry, FirstReached, Ledger};
use crate::instance;
use crate::later::Later;
use crate::settings::Settings;

/// The value of [`Progress::source`] for this crate.
const SOURCE: &str = "reporter";
/// The answer to a request for a checkpoint where the reporter is another process than the job.
const NO_LOOP: &str =
    "the training loop cannot be asked from outside: it does not embed the reporter";
/// [`Job::ending`] of a job that has not ended.
const NOT_ENDED: u8 = 0;
/// [`Job::ending`] of a job that has finished.
const FINISHED: u8 = 1;
/// [`Job::ending`] of a job that ended by an error.
const FAILED: u8 = 2;

/// A reporting job.
#[derive(Debug)]
pub(crate) struct Job {
    settings: Settings,
    pid: u32,
    instance: String,
    ledger: Ledger,
    /// 0 means unknown.
    epoch: AtomicU64,
    /// 0 means unknown.
    total_steps: AtomicU64,
    /// 0 means unknown.
    expected_steps: AtomicU64,
    ending: AtomicU8,
    doing: NowDoing,
    checkpoints: CheckpointLog,
    stop: Arc<AtomicBool>,
    later: Later,
    bell: Bell,
}

impl Job {
    /// A job that starts now, and rings the bell for urgent changes.
    pub(crate) fn new(mut settings: Settings, bell: Bell) -> Self {
        settings.forget_other_targets();
        let Settings { direction, targets, window, first_step, .. } = settings;
        let Settings { total_steps, expected_steps, .. } = settings;
        let clock = Clock::start();
        let resumed = settings.resumed.as_deref();
        let total_steps = total_steps.or(resumed.and_then(|before| before.total_steps));
        let expected_steps = expected_steps.or(resumed.and_then(|before| before.expected_steps));
        let ledger = Ledger::new(clock, direction, targets, window);
        ledger.set_step(first_step);
        Self {
            pid: std::process::id(),
            instance: instance::new(ledger.clock().began_since_epoch()),
            epoch: AtomicU64::new(resumed.and_then(|before| before.epoch).unwrap_or(0)),
            total_steps: AtomicU64::new(total_steps.unwrap_or(0)),
            expected_steps: AtomicU64::new(expected_steps.unwrap_or(0)),
            ledger,
            ending: AtomicU8::new(NOT_ENDED),
            doing: NowDoing::default(),
            checkpoints: CheckpointLog::default(),
            stop: Arc::default(),
            later: Later::default(),
            bell,
            settings,
        }
        .after_resuming()
    }

    /// Continues from the progress of an earlier process.
    fn after_resuming(self) -> Self {
        if let Some(before) = self.settings.resumed.as_deref() {
            self.ledger.resume(before);
            if let Some(kept) = &before.checkpoint.kept {
                self.checkpoints.resume(kept.clone());
            }
            let is_done = before.reached.objective_at.is_some() && self.settings.stop_at_objective;
            self.stop.store(is_done, Ordering::Relaxed);
        }
        self
    }

    /// The reports.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Asks the loop for a checkpoint; returns the request's number. Where the job is another process, its
    /// loop cannot be asked: the answer comes at once, so that the requester need not wait for it.
    pub(crate) fn ask_for_checkpoint(&self) -> u64 {
        let number = self.checkpoints.ask();
        if !self.has_loop()
            && let Some((number, reason)) = self.checkpoints.take(None, self.direction())
        {
            self.checkpoints.answer(number, reason, Err(NO_LOOP.to_owned()), self.unix_now());
            self.ring();
        }
        number
    }

    /// Whether the training loop has this reporter, and may look for requests.
    fn has_loop(&self) -> bool {
        self.settings.extension.is_none()
    }

    /// The requests for checkpoints, and their answers.
    pub(crate) fn checkpoints(&self) -> &CheckpointLog {
        &self.checkpoints
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The measuring program.
    pub(crate) fn source(&self) -> &str {
        self.settings.source.as_deref().unwrap_or(SOURCE)
    }

    /// Whether a smaller or a larger loss is better.
    pub(crate) fn direction(&self) -> Direction {
        self.settings.direction
    }

    /// The flag that tells the loop to stop.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// The queue of losses that are not known yet.
    pub(crate) fn later(&self) -> &Later {
        &self.later
    }

    /// Whether this is the process that started the reporter, and not a fork of it.
    pub(crate) fn is_original_process(&self) -> bool {
        std::process::id() == self.pid
    }

    /// Enters a batch that ends now. Not inlined, so that each caller has one call only.
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

    /// Enters the losses of steps that became known together. The last one is that of `last`, if given.
    pub(crate) fn enter_losses(&self, losses: &[f64], last: Option<u64>, now: Moment) {
        self.follow(self.ledger.enter_losses(losses, last, now));
    }

    #[inline]
    fn follow(&self, reached: FirstReached) {
        if reached.acceptable || reached.objective {
            self.target_reached(reached);
        }
    }

    /// Called at most twice in a job's life: once for each target.
    #[cold]
    fn target_reached(&self, reached: FirstReached) {
        // A fork that continues training counts for itself, and has no thread to wake.
        if !self.is_original_process() {
            return;
        }
        if reached.acceptable && self.has_loop() {
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

    /// One more sending end of the bell.
    #[cfg(all(feature = "sigterm", unix))]
    pub(crate) fn bell(&self) -> std::io::Result<crate::bell::End> {
        self.bell.another()
    }

    /// Sets the epoch, counted from 1.
    pub(crate) fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Sets the total of steps.
    pub(crate) fn set_total_steps(&self, steps: u64) {
        self.total_steps.store(steps, Ordering::Relaxed);
    }

    /// Sets the expected number of steps.
    pub(crate) fn set_expected_steps(&self, steps: u64) {
        self.expected_steps.store(steps, Ordering::Relaxed);
    }

    /// The current step.
    pub(crate) fn step(&self) -> u64 {
        self.ledger.position()
    }

    /// What the loop is doing.
    pub(crate) fn doing(&self) -> Task {
        self.doing.get()
    }

    /// Sets what the loop is doing.
    pub(crate) fn set_doing(&self, task: Task) {
        self.doing.set(task);
    }

    /// Records how the job ended, unless that has been recorded.
    pub(crate) fn end(&self, well: bool) {
        let ending = if well { FINISHED } else { FAILED };
        let (set, fetch) = (Ordering::Release, Ordering::Relaxed);
        // If it fails, the ending was recorded before.
        if self.ending.compare_exchange(NOT_ENDED, ending, set, fetch).is_ok() {
            self.ring();
        }
    }

    /// The current time by this job's clock, in Unix seconds.
    pub(crate) fn unix_now(&self) -> f64 {
        let clock = self.ledger.clock();
        clock.unix(clock.elapsed())
    }

    /// Reads the progress, and the counts of durations, which only the metrics show.
    ///
    /// `signals`, `cpu`, `sidecar` and `tensorboard` come from elsewhere and are left at their defaults.
    pub(crate) fn read(&self) -> (Progress, Counts) {
        let Settings { job, loss_name, window, targets, dataset, rank, .. } = &self.settings;
        // The end comes first: all reports of a job that has ended are then in the reading.
        let ending = self.ending.load(Ordering::Acquire);
        let reading = self.ledger.read(loss_name, *window);
        let known =
            |count: &AtomicU64| Some(count.load(Ordering::Relaxed)).filter(|count| *count > 0);
        let total_steps = known(&self.total_steps);
        let most = total_steps.unwrap_or(u64::MAX);
        let clock = self.ledger.clock();
        let step = reading.step;
        let resumed = self.settings.resumed.as_deref();
        let before = resumed.map(|before| before.reached).unwrap_or_default();
        let progress = Progress {
            schema: SCHEMA,
            job: job.clone(),
            pid: self.pid,
            instance: self.instance.clone(),
            source: self.source().to_owned(),
            state: state(ending, reading.has_begun),
            started_at: clock.unix(Duration::ZERO),
            now: clock.unix(clock.elapsed()),
            step: (step > 0).then_some(step),
            epoch: known(&self.epoch),
            total_steps,
            expected_steps: known(&self.expected_steps).map(|steps| steps.min(most)),
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
            tensorboard: None,
            dropped: reading.dropped,
            rejected: reading.rejected,
        };
        // The histogram begins with this process, also where the counts continue.
        let earlier = resumed.map_or(0.0, |before| before.batch_latency.sum);
        let mut durations = reading.durations;
        durations.seconds = (progress.batch_latency.sum - earlier).max(0.0);
        (progress, durations)
    }
}

fn state(ending: u8, has_begun: bool) -> State {
    match ending {
        FINISHED => State::Finished,
        FAILED => State::Failed,
        _ if has_begun => State::Running,
        _ => State::Starting,
    }
}
