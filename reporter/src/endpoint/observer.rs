//! Reads the job, remembers its past, and tells whoever wants to know.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use paceline_wire::{Progress, State};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::doing::Task;
use crate::endpoint::cpu;
use crate::endpoint::events::Listeners;
use crate::endpoint::status_file::StatusFiles;
use crate::extension::Extension;
use crate::hot::histogram::Counts;
use crate::job::Job;
use crate::signals::{self, Doing, History, Sample};

/// News that nobody is waiting for are told no more often than this, in seconds.
const SELDOM: f64 = 1.0;

/// A look at the job is at most this far away.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);

/// Reads a job, off its hot path.
#[derive(Debug)]
pub(crate) struct Observer {
    job: Arc<Job>,
    /// Only the reporter's own thread comes here.
    past: Mutex<Past>,
    listeners: Listeners,
    files: StatusFiles,
    #[cfg(feature = "metrics")]
    recorder: Mutex<crate::recorder::Recorder>,
}

/// What was seen before.
#[derive(Debug)]
struct Past {
    history: History,
    /// What the loop is at.
    doing: Doing,
    told: Told,
    told_at: f64,
    written: Told,
    written_at: f64,
}

/// What makes a reading news.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    /// What is told at once.
    urgent: Urgent,
    /// How much has been reported.
    reports: (u64, u64, u64, Option<u64>),
    /// How many steps there are at most, and how many are expected.
    totals: (Option<u64>, Option<u64>),
}

/// What is told at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Urgent {
    reached: (bool, bool),
    state: Option<State>,
    answered: u64,
}

impl Observer {
    /// An observer that has seen nothing yet.
    pub(crate) fn new(job: Arc<Job>) -> Self {
        let settings = job.settings();
        let files =
            StatusFiles::new(settings.status_file.clone(), settings.termination_log.clone());
        let past = Past {
            history: History::new(),
            doing: Doing { task: Task::Training, since: 0.0 },
            told: Told::default(),
            told_at: f64::NEG_INFINITY,
            written: Told::default(),
            written_at: f64::NEG_INFINITY,
        };
        Self {
            #[cfg(feature = "metrics")]
            recorder: Mutex::new(crate::recorder::Recorder::new(&settings.job)),
            past: Mutex::new(past),
            listeners: Listeners::default(),
            files,
            job,
        }
    }

    /// The job that is observed.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// What the program adds that reports on behalf of the job.
    pub(crate) fn extension(&self) -> Option<&dyn Extension> {
        self.job.settings().extension.as_deref()
    }

    /// All who listen.
    pub(crate) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// How far the job has come, with what follows from that.
    pub(crate) fn read(&self) -> (Progress, Counts) {
        let (mut progress, durations) = self.job.read();
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = past.doing_at(self.job.doing(), &progress);
        progress.signals = signals::derive(&past.history, &progress, doing);
        progress.cpu = cpu::read();
        progress.sidecar = self.extension().map(Extension::describe);
        (progress, durations)
    }

    /// Looks at the job whenever the bell rings, and every now and then without.
    pub(crate) async fn run(&self, bell: UnixStream) {
        loop {
            let period = self.look();
            // Both are a reason to look: a ring, and that there was none for a while.
            if let Ok(Ok(())) = timeout(period, bell.readable()).await {
                silence(&bell);
            }
        }
    }

    /// Looks once; when to look next.
    fn look(&self) -> Duration {
        let (progress, durations) = self.job.read();
        self.record(&progress, durations);
        let period = self.remember(&progress);
        self.job.checkpoints().reconsider(
            progress.eval.value.filter(|_| progress.state == State::Running),
            self.job.direction(),
            progress.now,
        );
        let now = Told::of(&progress);
        let (tell, write) = {
            let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            let past = &mut *past;
            (
                now.is_news(&mut past.told, &mut past.told_at, progress.now),
                now.is_news(&mut past.written, &mut past.written_at, progress.now),
            )
        };
        if tell && !self.listeners.is_empty() {
            self.listeners.tell(&self.json());
        }
        if write && !self.files.is_empty() {
            self.files.write(&self.read().0);
        }
        period
    }

    /// The body of the progress, in one line.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.read().0).unwrap_or_default()
    }

    /// Leaves the last progress behind.
    pub(crate) fn close(&self) {
        let (progress, durations) = self.job.read();
        self.record(&progress, durations);
        if !self.files.is_empty() {
            self.files.write(&self.read().0);
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

    fn remember(&self, progress: &Progress) -> Duration {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        let task = self.job.doing();
        past.doing = past.doing_at(task, progress);
        past.history.push(Sample {
            at: progress.now - progress.started_at,
            step: progress.step.unwrap_or(0),
            count: progress.eval.count,
            sum: progress.eval.sum,
            rejected: progress.rejected,
            paused: task != Task::Training,
        });
        Duration::try_from_secs_f64(past.history.wanted_period()).unwrap_or(LONGEST_PERIOD)
    }
}

impl Past {
    /// What the loop is at, and since when as far as that has been seen.
    fn doing_at(&self, task: Task, progress: &Progress) -> Doing {
        let since = progress.now - progress.started_at;
        if self.doing.task == task { self.doing } else { Doing { task, since } }
    }
}

impl Told {
    fn of(progress: &Progress) -> Self {
        let Progress { reached, state, checkpoint, eval, batch_latency, rejected, epoch, .. } =
            progress;
        Self {
            urgent: Urgent {
                reached: (reached.acceptable_at.is_some(), reached.objective_at.is_some()),
                state: Some(*state),
                answered: checkpoint.answered,
            },
            reports: (eval.count, batch_latency.count, *rejected, *epoch),
            totals: (progress.total_steps, progress.expected_steps),
        }
    }

    /// Whether this is to be told after `before`, told at `at`; then it takes their place.
    fn is_news(self, before: &mut Self, at: &mut f64, now: f64) -> bool {
        let news = self.urgent != before.urgent || (self != *before && now - *at >= SELDOM);
        if news {
            (*before, *at) = (self, now);
        }
        news
    }
}

/// Takes the rings that have been heard out of the way of the next.
fn silence(bell: &UnixStream) {
    let mut rings = [0; 64];
    while bell.try_read(&mut rings).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: u64, acceptable: bool) -> Told {
        let urgent = Urgent { reached: (acceptable, false), ..Urgent::default() };
        Told { urgent, reports: (count, 0, 0, None), totals: (None, None) }
    }

    #[test]
    fn a_reached_target_is_told_at_once_and_everything_else_once_a_second() {
        let (mut before, mut at) = (Told::default(), f64::NEG_INFINITY);
        let mut news = |told: Told, now| told.is_news(&mut before, &mut at, now);
        assert!(news(told(1, false), 0.0));
        assert!(!news(told(2, false), 0.9), "it is too early");
        assert!(news(told(3, false), 1.0));
        assert!(!news(told(3, false), 9.0), "nothing has changed");
        assert!(news(told(4, false), 9.1));
        assert!(news(told(5, true), 9.2), "a target was reached");
        assert!(!news(told(6, true), 9.3));
    }

    #[test]
    fn total_that_is_set_before_a_report_is_news() {
        let (mut before, mut at) = (told(0, false), 0.0);
        let known = Told { totals: (Some(100), None), ..told(0, false) };
        assert!(known.is_news(&mut before, &mut at, 1.0));
        assert!(!known.is_news(&mut before, &mut at, 2.0));
    }
}
