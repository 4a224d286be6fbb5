//! The job that is reported on: sources on one side, the reporter's endpoint on the other.

mod listening;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_reporter::wire::{Progress, RankLatency, Sidecar, Source};
use paceline_reporter::{Builder, Extension, LocalAddr, Posted, Reporter, StartError};

use crate::clock::Clock;
use crate::desk::{Desk, Hints, Kind, LatencyFrom, SourceId};
use crate::observation::{Observation, Span};
use crate::push::{report, trainer_status};
pub use listening::Listening;

/// What stands in the progress as the source of what is posted.
const PUSH: &str = "push";

/// A job that others report on.
#[derive(Debug)]
pub struct Job {
    clock: Clock,
    /// Held while the state is waited for.
    turn: Mutex<()>,
    state: Mutex<State>,
    push: SourceId,
}

#[derive(Debug)]
struct State {
    desk: Desk,
    sources: BTreeMap<SourceId, Source>,
    /// From the moment it has started until it is closed: its thread has us, so it must go first.
    reporter: Option<Reporter>,
}

impl Job {
    /// Starts the reporter that `builder` describes, on behalf of a job with these hints.
    pub fn start(builder: Builder, hints: Hints) -> Result<Arc<Self>, StartError> {
        let mut desk = Desk::new(hints);
        let push = desk.add(Kind::Push);
        let job = Arc::new(Self {
            clock: Clock::start(),
            turn: Mutex::default(),
            state: Mutex::new(State { desk, sources: BTreeMap::new(), reporter: None }),
            push,
        });
        let extension: Arc<dyn Extension> = Arc::<Self>::clone(&job);
        job.state().reporter = Some(builder.on_behalf("sidecar", extension).start()?);
        Ok(job)
    }

    /// One more source; `name` stands in the progress.
    pub fn add(&self, kind: Kind, name: impl Into<String>) -> SourceId {
        let mut state = self.state();
        let id = state.desk.add(kind);
        state.sources.insert(id, Source { name: name.into(), ..Source::default() });
        id
    }

    /// Listens to a source: what it says until the result is dropped, it says now.
    pub fn listen(&self, source: SourceId) -> Listening<'_> {
        Listening::new(self, source)
    }

    /// Takes what a source says.
    pub fn take(&self, source: SourceId, observation: &Observation) {
        self.listen(source).take(observation);
    }

    /// Changes what is said of a source.
    pub fn describe(&self, source: SourceId, change: impl FnOnce(&mut Source)) {
        if let Some(known) = self.state().sources.get_mut(&source) {
            change(known);
        }
    }

    /// Where the endpoint is; `None` if reporting is switched off.
    pub fn address(&self) -> Option<LocalAddr> {
        self.state().reporter.as_ref()?.local_addr().cloned()
    }

    /// What the endpoint says now.
    pub fn progress(&self) -> Option<Progress> {
        // Asked without the lock: the reporter asks us in turn.
        let reporter = self.state().reporter.clone();
        reporter?.progress()
    }

    /// The job has ended, well or by an error.
    pub fn end(&self, well: bool) {
        if let Some(reporter) = &self.state().reporter {
            if well { reporter.finish() } else { reporter.fail() }
        }
    }

    /// Ends the endpoint, which leaves its last words.
    pub fn close(&self) {
        let reporter = self.state().reporter.take();
        drop(reporter);
    }

    /// The job's time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Who has waited comes first: a source that has much to say comes again at once, and would
    /// leave nobody else a chance.
    fn state(&self) -> MutexGuard<'_, State> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        state
    }

    /// Takes all that was posted at once.
    fn push(&self, observations: &[Observation]) {
        let count = u64::try_from(observations.len()).unwrap_or(u64::MAX);
        let source = || Source { name: PUSH.to_owned(), up: true, ..Source::default() };
        self.state().sources.entry(self.push).or_insert_with(source).lines += count;
        let mut listening = self.listen(self.push);
        for observation in observations {
            listening.take(observation);
        }
    }
}

impl Extension for Job {
    fn describe(&self) -> Sidecar {
        let state = self.state();
        let desk = &state.desk;
        let name = |id| state.sources.get(&id).map(|source| source.name.clone());
        Sidecar {
            loss_from: desk.loss_from().and_then(name),
            loss_span: desk.loss_span().map(|span| words(span).to_owned()),
            latency_from: desk.latency_from().map(|from| match from {
                LatencyFrom::Reported => "reported".to_owned(),
                LatencyFrom::Inferred => "inferred".to_owned(),
            }),
            block_buffered: desk.is_block_buffered(),
            sources: state.sources.values().cloned().collect(),
            ranks: desk
                .ranks()
                .map(|(rank, count, sum)| RankLatency { rank, count, sum })
                .collect(),
        }
    }

    fn post(&self, path: &str, body: &[u8]) -> Option<Posted> {
        let read = match path {
            "/v1/report" => report::parse(body).map_err(|error| error.to_string()),
            "/v1/trainer-status" => trainer_status::parse(body).map(|one| vec![one]),
            _ => return None,
        };
        Some(match read {
            Ok(observations) => {
                self.push(&observations);
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
