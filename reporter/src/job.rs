//! What a handle and the server share: who the job is and how far it has come.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use paceline_wire::{Checkpoint, Progress, SCHEMA, State};

use crate::clock::Clock;
use crate::histogram::Counts;
use crate::instance;
use crate::ledger::Ledger;
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
    /// 0 before the first.
    epoch: AtomicU64,
    ending: AtomicU8,
}

impl Job {
    /// A job that starts now.
    pub(crate) fn new(settings: Settings) -> Self {
        let Settings { direction, targets, window, .. } = settings;
        let clock = Clock::start();
        Self {
            pid: std::process::id(),
            instance: instance::new(clock.began_since_epoch()),
            ledger: Ledger::new(clock, direction, targets, window),
            epoch: AtomicU64::new(0),
            ending: AtomicU8::new(ENDLESS),
            settings,
        }
    }

    /// What has been reported.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Sets the epoch, counted from 1.
    pub(crate) fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Says how the job ended, unless that has been said.
    pub(crate) fn end(&self, well: bool) {
        let ending = if well { FINISHED } else { FAILED };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // A refusal means that the ending was said before.
        self.ending.compare_exchange(ENDLESS, ending, set, fetch).ok();
    }

    /// How far the job has come, with the counts of durations that only the metrics show.
    pub(crate) fn read(&self) -> (Progress, Counts) {
        let Settings { job, loss_name, window, targets, total_steps, dataset, .. } = &self.settings;
        let reading = self.ledger.read(loss_name, *window);
        let epoch = self.epoch.load(Ordering::Relaxed);
        let clock = self.ledger.clock();
        let progress = Progress {
            schema: SCHEMA,
            job: job.clone(),
            pid: self.pid,
            instance: self.instance.clone(),
            source: SOURCE.to_owned(),
            state: self.state(reading.steps),
            started_at: clock.unix(Duration::ZERO),
            now: clock.unix(clock.elapsed()),
            step: (reading.steps > 0).then_some(reading.steps),
            epoch: (epoch > 0).then_some(epoch),
            total_steps: *total_steps,
            dataset: dataset.clone(),
            eval: reading.eval,
            batch_latency: reading.latency,
            targets: *targets,
            reached: reading.reached,
            checkpoint: Checkpoint::default(),
            dropped: reading.dropped,
            rejected: reading.rejected,
        };
        (progress, reading.durations)
    }

    fn state(&self, steps: u64) -> State {
        match self.ending.load(Ordering::Relaxed) {
            FINISHED => State::Finished,
            FAILED => State::Failed,
            _ if steps > 0 => State::Running,
            _ => State::Starting,
        }
    }
}
