//! The observed job: connects the sources with the reporter's endpoint.

mod source_lock;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paceline_reporter::wire::{Forward, Progress, RankLatency, Sidecar, Source};
use paceline_reporter::{Builder, Extension, LocalAddr, Meter, Posted, Reporter, StartError};

use crate::clock::Clock;
#[cfg(feature = "forward")]
use paceline_lines::observation::{Observation, Span};

use crate::forward::Forwarding;
use crate::merger::{Hints, Kind, LatencyFrom, Merger, SourceId};
use crate::push::report::Report;
use crate::push::senders::Senders;
use crate::push::{report, trainer_status};
pub use source_lock::{Age, SourceLock};

/// The source name that the progress shows for posted reports.
const PUSH: &str = "push";
/// The longest wait for the last progress to be written. Nothing else is left to do then, and a reader of the status
/// file relies on it, however busy the machine is.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A job that is observed from outside: sources read it, a reporter publishes it.
#[derive(Debug)]
pub struct Job {
    clock: Clock,
    /// Held while a thread waits for the state, so that threads take turns.
    turn: Mutex<()>,
    state: Mutex<State>,
    push: SourceId,
    #[cfg(feature = "forward")]
    forwarding: std::sync::OnceLock<Forwarding>,
}

#[derive(Debug)]
struct State {
    merger: Merger,
    sources: BTreeMap<SourceId, Source>,
    senders: Senders,
    /// Set from the start until `close`. The reporter's thread holds a reference to the job, so it
    /// must be dropped first.
    reporter: Option<Reporter>,
}

impl Job {
    /// Starts the reporter that `builder` describes, for a job with these hints.
    pub fn start(builder: Builder, hints: Hints) -> Result<Arc<Self>, StartError> {
        let job = Self::new(hints, None);
        let extension: Arc<dyn Extension> = Arc::<Self>::clone(&job);
        // The endpoint answers before `start` returns. Reports posted until then wait for the lock.
        let mut state = job.state();
        let builder = builder.on_behalf("sidecar", extension).end_timeout(END_TIMEOUT);
        state.reporter = Some(builder.start()?);
        drop(state);
        Ok(job)
    }

    /// A job that nothing publishes.
    pub fn without_endpoint(hints: Hints) -> Arc<Self> {
        Self::new(hints, Some(Reporter::disabled()))
    }

    fn new(hints: Hints, reporter: Option<Reporter>) -> Arc<Self> {
        let mut merger = Merger::new(hints);
        let push = merger.add(Kind::Push);
        Arc::new(Self {
            clock: Clock::start(),
            turn: Mutex::default(),
            state: Mutex::new(State {
                merger,
                sources: BTreeMap::new(),
                senders: Senders::default(),
                reporter,
            }),
            push,
            #[cfg(feature = "forward")]
            forwarding: std::sync::OnceLock::new(),
        })
    }

    /// Forwards the progress from now on. Only the first call counts.
    #[cfg(feature = "forward")]
    pub fn forward_to(&self, forwarding: Forwarding) {
        drop(self.forwarding.set(forwarding));
    }

    /// What the progress is forwarded to, if anything.
    #[cfg(feature = "forward")]
    pub fn forwarding(&self) -> Option<&Forwarding> {
        self.forwarding.get()
    }

    /// Adds a source. The progress shows it as `name`.
    pub fn add(&self, kind: Kind, name: impl Into<String>) -> SourceId {
        let mut state = self.state();
        let id = state.merger.add(kind);
        state.sources.insert(id, Source { name: name.into(), ..Source::default() });
        id
    }

    /// Locks the job for several observations of one source. All of them get the time of this call.
    /// The lock is released when the result is dropped.
    pub fn lock(&self, source: SourceId) -> SourceLock<'_> {
        self.lock_for(source, Age::New)
    }

    /// The same for observations of this age.
    pub fn lock_for(&self, source: SourceId, age: Age) -> SourceLock<'_> {
        SourceLock::new(self, source, age)
    }

    /// Takes one observation of a source.
    pub fn take(&self, source: SourceId, observation: &Observation) {
        self.lock(source).take(observation);
    }

    /// Changes the description of a source in the progress. Returns what `change` does, unless the
    /// source is unknown.
    pub fn describe<T>(
        &self,
        source: SourceId,
        change: impl FnOnce(&mut Source) -> T,
    ) -> Option<T> {
        self.state().sources.get_mut(&source).map(change)
    }

    /// Whether a source reports training losses.
    pub fn has_loss(&self) -> bool {
        self.state().merger.loss_from().is_some()
    }

    /// The address of the endpoint; `None` if reporting is switched off.
    pub fn address(&self) -> Option<LocalAddr> {
        self.state().reporter.as_ref()?.local_addr().cloned()
    }

    /// The progress as the endpoint publishes it now.
    pub fn progress(&self) -> Option<Progress> {
        // The lock must be free here: the reporter calls back into the job.
        let reporter = self.state().reporter.clone();
        reporter?.progress()
    }

    /// What renders the metrics outside of the endpoint; `None` if reporting is switched off.
    pub fn meter(&self) -> Option<Meter> {
        self.state().reporter.as_ref()?.meter()
    }

    /// Marks the job as ended; `well` is false after an error.
    pub fn end(&self, well: bool) {
        if let Some(reporter) = &self.state().reporter {
            if well { reporter.finish() } else { reporter.fail() }
        }
    }

    /// Stops the endpoint, which writes its final status first.
    pub fn close(&self) {
        let reporter = self.state().reporter.take();
        drop(reporter);
    }

    /// The clock of the job.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Locks the state fairly. Without the turn, a busy source would take the lock again at once
    /// and starve the others.
    fn state(&self) -> MutexGuard<'_, State> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        state
    }

    #[cfg(feature = "forward")]
    fn forwards(&self) -> Vec<Forward> {
        self.forwarding.get().map(Forwarding::describe).unwrap_or_default()
    }

    #[cfg(not(feature = "forward"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn forwards(&self) -> Vec<Forward> {
        Vec::new()
    }

    /// Takes all observations of one request.
    fn push<'a>(&self, observations: impl ExactSizeIterator<Item = &'a Observation>) {
        let count = u64::try_from(observations.len()).unwrap_or(u64::MAX);
        let source = || Source { name: PUSH.to_owned(), up: true, ..Source::default() };
        self.state().sources.entry(self.push).or_insert_with(source).lines += count;
        let mut lock = self.lock(self.push);
        for observation in observations {
            lock.take(observation);
        }
    }
}

/// Reads a body; an error is one line.
type Read = fn(&[u8]) -> Result<Vec<Report>, String>;

/// The paths that take a body by POST, and how each is read.
const POSTS: [(&str, Read); 2] = [
    ("/v1/report", |body| report::parse(body).map_err(|error| error.to_string())),
    ("/v1/trainer-status", |body| {
        trainer_status::parse(body).map(|observation| vec![Report { observation, mark: None }])
    }),
];

/// The method and the path of each request that a sidecar adds to a job's endpoint.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    POSTS.iter().map(|(path, _)| ("POST", *path))
}

impl Extension for Job {
    fn describe(&self) -> Sidecar {
        let state = self.state();
        let merger = &state.merger;
        let name = |id| state.sources.get(&id).map(|source| source.name.clone());
        Sidecar {
            loss_from: merger.loss_from().and_then(name),
            loss_span: merger.loss_span().map(|span| words(span).to_owned()),
            latency_from: merger.latency_from().map(|from| match from {
                LatencyFrom::Reported => "reported".to_owned(),
                LatencyFrom::Inferred => "inferred".to_owned(),
            }),
            block_buffered: merger.is_block_buffered(),
            sources: state.sources.values().cloned().collect(),
            ranks: merger
                .ranks()
                .map(|(rank, count, sum)| RankLatency { rank, count, sum })
                .collect(),
            forwards: self.forwards(),
        }
    }

    #[cfg(feature = "forward")]
    fn is_subscribed(&self) -> bool {
        self.forwarding.get().is_some()
    }

    #[cfg(feature = "forward")]
    fn publish(&self, progress: &Progress, is_last: bool) {
        if let Some(forwarding) = self.forwarding.get() {
            forwarding.publish(progress, is_last);
        }
    }

    fn post(&self, path: &str, body: &[u8]) -> Option<Posted> {
        let (_, read) = POSTS.iter().find(|(name, _)| *name == path)?;
        Some(match read(body) {
            Ok(mut reports) => {
                self.state().senders.keep_new(&mut reports);
                // A time that has not come yet is that of a clock that was set: the arrival is closer to it.
                let now = self.clock.unix();
                for at in reports.iter_mut().filter_map(|report| report.observation.at.as_mut()) {
                    *at = at.min(now);
                }
                self.push(reports.iter().map(|report| &report.observation));
                Posted::Taken
            }
            Err(problem) => Posted::Refused(problem),
        })
    }
}

fn words(span: Span) -> &'static str {
    match span {
        Span::Step => "step",
        Span::Interval => "interval",
        Span::EpochSoFar => "epoch so far",
        Span::Epoch => "epoch",
        Span::Run => "run",
    }
}

#[cfg(test)]
mod tests;
