//! Reads the job, records its past, and sends changes to listeners and files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use paceline_wire::{Activity, Forward, Health, Progress, Sidecar, State};
use tokio::time::timeout;

use crate::bell::AsyncEnd;
use crate::doing::Task;
#[cfg(feature = "page")]
use crate::endpoint::chart::Chart;
use crate::endpoint::cpu::CpuMeter;
use crate::endpoint::events::Listeners;
use crate::endpoint::status_file::StatusFiles;
use crate::extension::Extension;
use crate::hot::histogram::Counts;
use crate::job::Job;
use crate::signals::{self, Doing, History, Sample};

/// The least time between two publications of changes that are not urgent, in seconds.
const MIN_INTERVAL: f64 = 1.0;

/// The longest time between two readings of the job.
const MAX_PERIOD: Duration = Duration::from_secs(1);

/// Reads a job, off its hot path.
#[derive(Debug)]
pub(crate) struct Observer {
    job: Arc<Job>,
    /// Only the reporter's own thread uses this.
    past: Mutex<Past>,
    cpu: CpuMeter,
    listeners: Listeners,
    files: StatusFiles,
    #[cfg(feature = "metrics")]
    recorder: Mutex<crate::recorder::Recorder>,
    #[cfg(feature = "tensorboard")]
    board: Option<Mutex<crate::tensorboard::Board>>,
}

/// What earlier readings showed.
#[derive(Debug)]
struct Past {
    history: History,
    #[cfg(feature = "page")]
    chart: Chart,
    /// What the loop is doing.
    doing: Doing,
    last_sent: Digest,
    last_sent_at: f64,
    last_written: Digest,
    last_written_at: f64,
    last_published: Urgent,
    last_published_at: f64,
    /// Whether the last reading was published: connections may still be served, but nothing follows it.
    is_closed: bool,
}

/// The parts of a reading whose change is published.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Digest {
    /// Parts whose change is published at once.
    urgent: Urgent,
    /// Counts of what has been reported.
    reports: (u64, u64, u64, Option<u64>),
    /// The number of losses on held-out data.
    validations: u64,
    /// A job that stalls or evaluates reports nothing, and a reader is to see it.
    condition: (Activity, Health),
    /// The number of checkpoints that were asked for.
    requested: u64,
    /// What an extension says of its sources, as a hash.
    sources: u64,
    /// The step: a sidecar may see it advance beside a loss that stays the same.
    step: Option<u64>,
    /// The total and the expected number of steps.
    totals: (Option<u64>, Option<u64>),
}

/// Parts whose change is published at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Urgent {
    reached: (bool, bool),
    state: Option<State>,
    answered: u64,
}

impl Observer {
    /// An observer without a reading.
    pub(crate) fn new(job: Arc<Job>) -> Self {
        let settings = job.settings();
        let files = StatusFiles::new(
            settings.status_file.clone(),
            settings.termination_log.clone(),
            settings.rank,
        );
        #[cfg(any(feature = "page", feature = "tensorboard"))]
        let (progress, durations) = job.read();
        #[cfg(feature = "tensorboard")]
        let board = settings
            .tensorboard
            .as_deref()
            .map(|folder| crate::tensorboard::Board::new(folder, settings.rank, &progress));
        // The reports of an earlier process have no times.
        let history = settings
            .resumed
            .as_deref()
            .map_or_else(History::new, |_| History::after(sample(&job.read().0, Task::Training)));
        let past = Past {
            history,
            #[cfg(feature = "page")]
            chart: Chart::new(&progress, &durations),
            doing: Doing { task: Task::Training, since: 0.0 },
            last_sent: Digest::default(),
            last_sent_at: f64::NEG_INFINITY,
            last_written: Digest::default(),
            last_written_at: f64::NEG_INFINITY,
            last_published: Urgent::default(),
            last_published_at: f64::NEG_INFINITY,
            is_closed: false,
        };
        Self {
            #[cfg(feature = "metrics")]
            recorder: Mutex::new(crate::recorder::Recorder::new(&settings.job)),
            #[cfg(feature = "tensorboard")]
            board: board.map(Mutex::new),
            past: Mutex::new(past),
            cpu: CpuMeter::default(),
            listeners: Listeners::default(),
            files,
            job,
        }
    }

    /// The observed job.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// What a program that reports on behalf of the job adds.
    pub(crate) fn extension(&self) -> Option<&dyn Extension> {
        self.job.settings().extension.as_deref()
    }

    /// All listeners.
    pub(crate) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Reads the progress, with the derived signals.
    pub(crate) fn read(&self) -> (Progress, Counts) {
        let (mut progress, durations) = self.job.read();
        progress.tensorboard = self.drawn();
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = past.doing_at(self.job.doing(), &progress);
        progress.signals = signals::derive(&past.history, &progress, doing);
        progress.cpu = self.cpu.read(progress.now - progress.started_at);
        progress.sidecar = self.extension().map(Extension::describe);
        (progress, durations)
    }

    /// Reads the job whenever the bell rings, and periodically.
    pub(crate) async fn run(&self, bell: AsyncEnd) {
        while !self.is_closed() {
            let period = self.observe();
            // Both a ring and a timeout lead to the next reading.
            if let Ok(Ok(())) = timeout(period, bell.readable()).await {
                silence(&bell);
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.past.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Reads the job once; returns when to read it next.
    fn observe(&self) -> Duration {
        let (progress, durations) = self.job.read();
        let period = self.remember(&progress, &durations);
        self.record(&progress, durations);
        self.draw(&progress, false);
        self.job.checkpoints().reconsider(
            progress.eval.value.filter(|_| progress.state == State::Running),
            self.job.direction(),
            progress.now,
        );
        let now = self.digest(&progress);
        let (send, write) = {
            let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            let past = &mut *past;
            (
                now.is_news(&mut past.last_sent, &mut past.last_sent_at, progress.now),
                now.is_news(&mut past.last_written, &mut past.last_written_at, progress.now),
            )
        };
        if send && !self.listeners.is_empty() {
            self.listeners.send(&self.json());
        }
        if write && !self.files.is_empty() {
            self.files.write(&self.read().0);
        }
        self.publish(now.urgent, progress.now);
        period
    }

    /// The parts of a reading whose change is published. Those that take long to find are left out if no
    /// listener and no file waits for them.
    fn digest(&self, progress: &Progress) -> Digest {
        let digest = Digest::from_progress(progress);
        if self.listeners.is_empty() && self.files.is_empty() {
            return digest;
        }
        let sources = self.extension().map_or(0, |extension| hash(&extension.describe()));
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = past.doing_at(self.job.doing(), progress);
        let condition = signals::condition(&past.history, progress, doing);
        Digest { condition, sources, ..digest }
    }

    /// Gives a reading to the extension, if it wants one. What it waits for may pass without news, so this
    /// does not depend on news.
    fn publish(&self, urgent: Urgent, now: f64) {
        let Some(extension) = self.extension().filter(|one| one.is_subscribed()) else { return };
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if urgent == past.last_published && now - past.last_published_at < MIN_INTERVAL {
            return;
        }
        (past.last_published, past.last_published_at) = (urgent, now);
        // Reading takes the lock as well.
        drop(past);
        extension.publish(&self.read().0, false);
    }

    /// The progress as one line of JSON.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.read().0).unwrap_or_default()
    }

    /// The past as JSON: the points after `after`, in Unix seconds.
    #[cfg(feature = "page")]
    pub(crate) fn past(&self, after: f64) -> String {
        let (progress, _) = self.job.read();
        // The lock is free again before the text is made.
        let past =
            self.past.lock().unwrap_or_else(PoisonError::into_inner).chart.read(&progress, after);
        serde_json::to_string(&past).unwrap_or_default()
    }

    /// Writes the last progress to the files, and sends it to the listeners unless they have it: they learn
    /// how the job ended.
    pub(crate) fn close(&self) {
        self.past.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        let (progress, durations) = self.job.read();
        self.record(&progress, durations);
        self.draw(&progress, true);
        if !self.files.is_empty() {
            self.files.write(&self.read().0);
        }
        if let Some(extension) = self.extension().filter(|one| one.is_subscribed()) {
            extension.publish(&self.read().0, true);
        }
        let last = self.digest(&progress);
        let is_sent = {
            let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            past.last_sent == last
        };
        if !is_sent && !self.listeners.is_empty() {
            self.listeners.send(&self.json());
        }
    }

    #[cfg(feature = "metrics")]
    fn record(&self, progress: &Progress, durations: Counts) {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.record(progress, durations);
    }

    #[cfg(not(feature = "metrics"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn record(&self, _: &Progress, _: Counts) {}

    /// Writes a point of the event files.
    #[cfg(feature = "tensorboard")]
    fn draw(&self, progress: &Progress, is_last: bool) {
        let Some(board) = &self.board else { return };
        let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock of the past is free again before the disk is written.
        board.add(progress, is_last, || {
            let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            signals::smoothed(&past.history, progress)
        });
    }

    #[cfg(not(feature = "tensorboard"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn draw(&self, _: &Progress, _: bool) {}

    /// The points of the event files so far.
    #[cfg(feature = "tensorboard")]
    fn drawn(&self) -> Option<Forward> {
        let board = self.board.as_ref()?;
        Some(board.lock().unwrap_or_else(PoisonError::into_inner).describe())
    }

    #[cfg(not(feature = "tensorboard"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn drawn(&self) -> Option<Forward> {
        None
    }

    #[cfg_attr(
        not(feature = "page"),
        expect(unused_variables, reason = "only the page shows durations")
    )]
    fn remember(&self, progress: &Progress, durations: &Counts) -> Duration {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let past = &mut *past;
        let task = self.job.doing();
        past.doing = past.doing_at(task, progress);
        past.history.push(sample(progress, task));
        #[cfg(feature = "page")]
        past.chart.add(progress, durations, || signals::smoothed(&past.history, progress));
        Duration::try_from_secs_f64(past.history.wanted_period()).unwrap_or(MAX_PERIOD)
    }
}

/// The reports up to a reading.
fn sample(progress: &Progress, task: Task) -> Sample {
    Sample {
        at: progress.now - progress.started_at,
        step: progress.step.unwrap_or(0),
        count: progress.eval.count,
        sum: progress.eval.sum,
        recent: progress.eval.value,
        rejected: progress.rejected,
        paused: task != Task::Training,
    }
}

impl Past {
    /// What the loop is doing, and since when, as far as readings show.
    fn doing_at(&self, task: Task, progress: &Progress) -> Doing {
        let since = progress.now - progress.started_at;
        if self.doing.task == task { self.doing } else { Doing { task, since } }
    }
}

impl Digest {
    fn from_progress(progress: &Progress) -> Self {
        let Progress { reached, state, checkpoint, eval, batch_latency, rejected, epoch, .. } =
            progress;
        Self {
            urgent: Urgent {
                reached: (reached.acceptable_at.is_some(), reached.objective_at.is_some()),
                state: Some(*state),
                answered: checkpoint.answered,
            },
            reports: (eval.count, batch_latency.count, *rejected, *epoch),
            step: progress.step,
            validations: progress.validation.map_or(0, |validation| validation.count),
            requested: checkpoint.requested,
            totals: (progress.total_steps, progress.expected_steps),
            ..Self::default()
        }
    }

    /// Whether to publish this after `before`, which was published at `at`. If so, replaces both.
    fn is_news(self, before: &mut Self, at: &mut f64, now: f64) -> bool {
        let news = self.urgent != before.urgent || (self != *before && now - *at >= MIN_INTERVAL);
        if news {
            (*before, *at) = (self, now);
        }
        news
    }
}

/// Which sources can be read, and what the user can do about the others.
fn hash(described: &Sidecar) -> u64 {
    let mut hasher = DefaultHasher::new();
    for source in &described.sources {
        (source.up, &source.grammar, &source.error, &source.hint).hash(&mut hasher);
    }
    hasher.finish()
}

/// Discards the rings so far.
fn silence(bell: &AsyncEnd) {
    let mut rings = [0; 64];
    while bell.try_read(&mut rings).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bell::Bell;
    use crate::hot::clock::Clock;
    use crate::hot::ledger::Entry;
    use crate::settings::Settings;

    fn digest(count: u64, acceptable: bool) -> Digest {
        let urgent = Urgent { reached: (acceptable, false), ..Urgent::default() };
        Digest { urgent, reports: (count, 0, 0, None), ..Digest::default() }
    }

    #[test]
    fn reached_target_is_sent_at_once_and_the_rest_each_second() {
        let (mut before, mut at) = (Digest::default(), f64::NEG_INFINITY);
        let mut news = |digest: Digest, now| digest.is_news(&mut before, &mut at, now);
        assert!(news(digest(1, false), 0.0));
        assert!(!news(digest(2, false), 0.9), "it is too early");
        assert!(news(digest(3, false), 1.0));
        assert!(!news(digest(3, false), 9.0), "nothing has changed");
        assert!(news(digest(4, false), 9.1));
        assert!(news(digest(5, true), 9.2), "a target was reached");
        assert!(!news(digest(6, true), 9.3));
    }

    #[test]
    fn losses_after_a_huge_one_are_remembered_as_they_are() {
        let job = Arc::new(Job::new(Settings::new("vae".to_owned()), Bell::new().unwrap().0));
        let observer = Observer::new(Arc::clone(&job));
        for loss in [1e20, 0.5, 0.5, 0.5, 0.5, 0.5] {
            job.enter(Entry { loss: Some(loss), took: None }, Clock::now());
            observer.observe();
        }
        let past = observer.past.lock().unwrap();
        let known = past.history.buckets().iter().filter(|bucket| bucket.count > 0.0);
        let means: Vec<f64> = known.map(|bucket| bucket.mean).collect();
        assert_eq!(means, [1e20, 0.5], "those that share the window with it are left out");
    }

    #[test]
    fn step_without_another_loss_is_news() {
        let (mut before, mut at) = (digest(1, false), 0.0);
        let moved = Digest { step: Some(2), ..digest(1, false) };
        assert!(!moved.is_news(&mut before, &mut at, 0.9), "it is too early");
        assert!(moved.is_news(&mut before, &mut at, 1.0));
        assert!(!moved.is_news(&mut before, &mut at, 2.0));
    }

    #[test]
    fn stall_without_a_report_is_news() {
        let (mut before, mut at) = (digest(1, false), 0.0);
        let stalled = Digest { condition: (Activity::Stalled, Health::Fine), ..digest(1, false) };
        assert!(stalled.is_news(&mut before, &mut at, 60.0));
        assert!(!stalled.is_news(&mut before, &mut at, 90.0));
    }

    #[test]
    fn total_that_is_set_before_a_report_is_news() {
        let (mut before, mut at) = (digest(0, false), 0.0);
        let known = Digest { totals: (Some(100), None), ..digest(0, false) };
        assert!(known.is_news(&mut before, &mut at, 1.0));
        assert!(!known.is_news(&mut before, &mut at, 2.0));
    }
}
