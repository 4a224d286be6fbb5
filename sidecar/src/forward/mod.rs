//! Forwards the job's progress to where others read it, on request, and never at the job's cost.
//!
//! The reporter's thread gives each reading to [`Forwarding::publish`], which only puts it into
//! bounded inboxes. Each [`Target`] has a thread of its own, so one that hangs delays no other one and
//! never the job. Of readings the newest wins; of events the newest wait. What a target could not
//! get is counted.
//!
//! At the end, [`Forwarding::close`] waits for the last state to be sent, for a bounded time.

mod ending;
mod event;
pub mod hook;
mod http;
mod inbox;
pub mod katib;
mod number;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod statsd;
#[cfg(test)]
mod testing;
pub mod trainjob;
mod watcher;
pub mod webhook;

use std::fmt::Debug;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use paceline_reporter::wire::{Forward, Progress, State};

pub use ending::Ending;
pub use event::{Event, EventSet, Kind};
use inbox::Inbox;
use watcher::Watcher;

use crate::say::say;

/// The time within which the last reading arrives once the job has ended.
const LAST_READING_TIMEOUT: Duration = Duration::from_secs(1);
/// Targets get this much less time than [`Forwarding::close`] waits, so that they can clean up.
const CLEAN_UP_TIME: Duration = Duration::from_millis(500);
/// The longest time for which [`Forwarding::close`] waits where no other is given.
pub const DEFAULT_FLUSH_TIMEOUT: Duration = Duration::from_secs(8);

/// Something that progress is forwarded to. It runs on a thread of its own and may block there.
pub trait Target: Debug + Send {
    /// Its name in the progress, the metrics and messages, without secrets.
    fn name(&self) -> String;

    /// What it is given.
    fn takes(&self) -> Takes;

    /// Takes the progress of an earlier process, whose reports that one has sent.
    fn resume(&mut self, _before: &Progress) {}

    /// Sends one item. It should return within `ending.remaining(…)`; what takes longer is abandoned
    /// at the end of the process. An error is one line without secrets.
    fn send(&mut self, item: &Item, ending: &Ending) -> Result<Outcome, String>;
}

/// What a target is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The newest reading.
    Readings {
        /// The time between two of them; the last one is given at once.
        period: Duration,
        /// The time between two of them that the last one must keep as well.
        spacing: Duration,
    },
    /// Each of these events.
    Events(EventSet),
}

/// What is forwarded.
#[derive(Clone, Debug)]
pub enum Item {
    /// A reading.
    Reading {
        /// The reading.
        progress: Arc<Progress>,
        /// Whether no other one follows.
        is_last: bool,
    },
    /// An event.
    Event(Arc<Event>),
}

impl Item {
    /// Whether the job had ended when this was read.
    fn is_of_end(&self) -> bool {
        let progress = match self {
            Self::Reading { progress, .. } => progress,
            Self::Event(event) => &event.progress,
        };
        matches!(progress.state, State::Finished | State::Failed)
    }
}

/// What a target did with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was sent.
    Sent,
    /// It had nothing new for this target.
    Nothing,
}

/// All targets of a job.
#[derive(Debug)]
pub struct Forwarding {
    lanes: Vec<Lane>,
    watcher: Mutex<Watcher>,
    ending: Arc<Ending>,
    live: Arc<Live>,
    has_last: Mutex<bool>,
    last_arrived: Condvar,
    is_hurried: AtomicBool,
}

/// A target's side of this thread.
#[derive(Debug)]
struct Lane {
    name: String,
    takes: Takes,
    inbox: Arc<Inbox>,
}

/// The number of running threads.
#[derive(Debug, Default)]
struct Live {
    count: Mutex<usize>,
    changed: Condvar,
}

/// Counts a thread as running until it is dropped, also by a panic.
#[derive(Debug)]
struct Running(Arc<Live>);

impl Forwarding {
    /// Starts a thread for each target.
    pub fn start(targets: Vec<Box<dyn Target>>) -> io::Result<Self> {
        let (ending, live) = (Arc::new(Ending::new()), Arc::<Live>::default());
        let mut lanes: Vec<Lane> = Vec::new();
        for target in targets {
            let name = unique(target.name(), &lanes);
            let takes = target.takes();
            let inbox = Arc::new(Inbox::new(takes));
            let work = Work {
                name: name.clone(),
                target,
                inbox: Arc::clone(&inbox),
                ending: Arc::clone(&ending),
                running: Running::new(&live),
            };
            thread::Builder::new().name("forward".to_owned()).spawn(move || work.run())?;
            lanes.push(Lane { name, takes, inbox });
        }
        Ok(Self {
            lanes,
            watcher: Mutex::default(),
            ending,
            live,
            has_last: Mutex::new(false),
            last_arrived: Condvar::new(),
            is_hurried: AtomicBool::new(false),
        })
    }

    /// Takes a reading; `is_last` if no other one follows. Never blocks.
    pub fn publish(&self, progress: &Progress, is_last: bool) {
        let mut reading = progress.clone();
        // What the sidecar reads concerns no one else, and may be long.
        reading.sidecar = None;
        let progress = Arc::new(reading);
        let events = lock(&self.watcher).observe(&progress, is_last);
        for lane in &self.lanes {
            match lane.takes {
                Takes::Readings { .. } => {
                    lane.inbox.put(Item::Reading { progress: Arc::clone(&progress), is_last });
                }
                Takes::Events(set) => {
                    for event in events.iter().filter(|event| set.contains(event.kind)) {
                        lane.inbox.put(Item::Event(Arc::clone(event)));
                    }
                }
            }
        }
        if is_last {
            *lock(&self.has_last) = true;
            self.last_arrived.notify_all();
        }
    }

    /// What was forwarded so far.
    pub fn describe(&self) -> Vec<Forward> {
        let lanes = self.lanes.iter();
        lanes.map(|lane| Forward { name: lane.name.clone(), ..lane.inbox.counts() }).collect()
    }

    /// Waits until all targets have sent the last state, but at most for `timeout`. Names those that
    /// have not.
    pub fn close(&self, timeout: Duration) {
        let has_last = lock(&self.has_last);
        let waited =
            self.last_arrived.wait_timeout_while(has_last, LAST_READING_TIMEOUT, |has| !*has);
        drop(waited);
        self.ending.begin(timeout.saturating_sub(CLEAN_UP_TIME));
        for lane in &self.lanes {
            lane.inbox.close();
        }
        let running = lock(&self.live.count);
        let is_needed = |count: &mut usize| *count > 0 && !self.is_hurried.load(Ordering::Relaxed);
        drop(self.live.changed.wait_timeout_while(running, timeout, is_needed));
        if self.is_hurried.load(Ordering::Relaxed) {
            let running = lock(&self.live.count);
            let is_needed = |count: &mut usize| *count > 0;
            drop(self.live.changed.wait_timeout_while(running, CLEAN_UP_TIME, is_needed));
        }
        for lane in self.lanes.iter().filter(|lane| !lane.inbox.is_done()) {
            say(format_args!(
                "cannot forward the last state to {}: it was not sent within {} s; see \
                 --flush-timeout",
                lane.name,
                timeout.as_secs_f64()
            ));
        }
    }

    /// Makes [`Forwarding::close`] return soon.
    pub fn hurry(&self) {
        self.ending.begin(Duration::ZERO);
        // Under the lock, so that a thread about to wait does not miss it.
        let running = lock(&self.live.count);
        self.is_hurried.store(true, Ordering::Relaxed);
        drop(running);
        self.live.changed.notify_all();
    }
}

/// What a target's thread owns.
#[derive(Debug)]
struct Work {
    name: String,
    target: Box<dyn Target>,
    inbox: Arc<Inbox>,
    ending: Arc<Ending>,
    running: Running,
}

impl Work {
    fn run(self) {
        let Self { name, mut target, inbox, ending, running } = self;
        let mut has_failed = false;
        while let Some(item) = inbox.next() {
            let outcome = target.send(&item, &ending);
            if let Err(error) = &outcome
                && !mem::replace(&mut has_failed, true)
            {
                // Its endpoint is about to close, or closed.
                let advice = if item.is_of_end() || ending.has_begun() {
                    "the job has ended, and its exit code stays"
                } else {
                    "the job runs on, further failures are only counted in /v1/progress"
                };
                say(format_args!("cannot forward to {name}: {error}; {advice}"));
            }
            inbox.done(outcome);
        }
        inbox.finish();
        drop(running);
    }
}

impl Running {
    fn new(live: &Arc<Live>) -> Self {
        *lock(&live.count) += 1;
        Self(Arc::clone(live))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.changed.notify_all();
    }
}

/// A name that no other lane has: metrics must not have two equal ones.
fn unique(name: String, lanes: &[Lane]) -> String {
    let is_taken = |name: &str| lanes.iter().any(|lane| lane.name == name);
    if !is_taken(&name) {
        return name;
    }
    let mut numbered = (2..).map(|number| format!("{name}#{number}"));
    numbered.find(|one| !is_taken(one)).unwrap_or(name)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
