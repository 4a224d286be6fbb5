//! Reads a container's output by attaching to it. The container engine's log would hold back a
//! progress bar until its line ends.
//!
//! Two requests to the engine's API are enough: whether the container runs, and its output as a
//! stream.

mod engine;
mod frames;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paceline_grammar::Patterns;
use paceline_lines::terminal::wrapping::Stream;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use self::engine::{Engine, EngineError, check};
use self::frames::Frames;
use crate::job::{Age, Job};
use crate::merger::{Kind, SourceId};
use crate::say::say;
use crate::source::text::Text;
use crate::state::SeenSoFar;

/// Wait before attaching again after a failure.
const ATTACH_BACKOFF: Duration = Duration::from_secs(1);
/// An incomplete line is read after this much silence.
const SILENCE: Duration = Duration::from_millis(40);
/// How long output may come without silence and still be from before the attachment …
const BACKLOG: Duration = Duration::from_secs(1);
/// … unless a read has to wait for as long as this: the engine sends what it has kept without a pause.
const PAUSE: Duration = Duration::from_millis(2);
/// The most that is read of the output at once.
const CHUNK: usize = 16 * 1024;

/// An attached container.
#[derive(Debug)]
pub struct Container {
    engine: Engine,
    job: Arc<Job>,
    name: String,
    source: SourceId,
    text: Text,
    /// Whether the output from before the attachment has been read.
    attached: bool,
    seen: Shared,
    /// Bytes to come that an earlier sidecar has reported.
    reported: u64,
    /// The failure that was said last.
    said: Option<String>,
}

/// How much of the output of a container was read so far. While it is locked, nothing of the container is reported.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<SeenSoFar>>);

impl Shared {
    /// Locks it.
    pub fn lock(&self) -> MutexGuard<'_, SeenSoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Container {
    /// The container with this name or id, which need not exist yet. `before` is what an earlier sidecar has
    /// read of it. An error names what is invalid: the engine's address, or the name.
    pub fn new(
        job: &Arc<Job>,
        name: &str,
        patterns: &Patterns,
        before: Option<&SeenSoFar>,
    ) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        check(name).map_err(invalid)?;
        let engine = Engine::from_environment().map_err(invalid)?;
        let container = Self::of_engine(engine, job, name, patterns);
        container.seen.lock().clone_from(before.unwrap_or(&SeenSoFar::default()));
        Ok(container)
    }

    /// How much was read so far.
    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    fn of_engine(engine: Engine, job: &Arc<Job>, name: &str, patterns: &Patterns) -> Self {
        let source = job.add(Kind::Text, format!("docker:{name}"));
        Self {
            engine,
            job: Arc::clone(job),
            name: name.to_owned(),
            source,
            text: Text::new(Arc::clone(job), source, patterns.clone()),
            attached: false,
            seen: Shared::default(),
            reported: 0,
            said: None,
        }
    }

    /// Reads until `stop` is true or the container's end. Returns whether it exited with code 0, or
    /// `None` if it has not ended.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Option<bool> {
        let ended = tokio::select! {
            ended = self.read() => Some(ended),
            // An engine that does not answer must not delay the end.
            _ = stop.wait_for(|stop| *stop) => None,
        };
        self.text.finish();
        ended
    }

    /// Reads until the container's end. Returns whether it exited with code 0.
    async fn read(&mut self) -> bool {
        loop {
            match self.attach().await {
                Ok(Some(well)) => return well,
                Ok(None) => {}
                Err(error) => self.fail(&error),
            }
            sleep(ATTACH_BACKOFF).await;
        }
    }

    /// Shows a failure, and says it unless it was the last one said.
    fn fail(&mut self, error: &EngineError) {
        let failure = error.to_string();
        if self.said.as_ref() != Some(&failure) {
            say(format_args!("cannot read --docker {}: {failure}; trying again", self.name));
            self.said = Some(failure.clone());
        }
        self.job.describe(self.source, |known| {
            known.up = false;
            known.error = Some(failure);
        });
    }

    /// Reads until the attachment ends. Returns whether the container exited with code 0, or `None`
    /// if it still runs.
    async fn attach(&mut self) -> Result<Option<bool>, EngineError> {
        let before = self.engine.inspect(&self.name).await?;
        self.expect(&before.id);
        let mut output = self.engine.attach(&self.name, !self.attached).await?;
        let mut frames = Frames::new(before.tty());
        let since = Instant::now();
        self.attached = true;
        self.said = None;
        self.job.describe(self.source, |known| {
            known.up = true;
            known.error = None;
        });
        let mut chunk = vec![0; CHUNK];
        loop {
            let asked = Instant::now();
            match timeout(SILENCE, output.read(&mut chunk)).await {
                // The engine ends a stream with an error as well. The container's state decides, and the
                // next attachment reports what is still wrong.
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(read)) => {
                    if since.elapsed() >= BACKLOG && asked.elapsed() >= PAUSE {
                        self.catch_up();
                    }
                    let bytes = chunk.get(..read).unwrap_or_default();
                    frames.feed(bytes, |stream, text| self.take(stream, text));
                }
                Err(_) => {
                    self.text.flush();
                    self.catch_up();
                }
            }
        }
        Ok(self.engine.inspect(&self.name).await?.ended())
    }

    /// Prepares for the output of the container with this id. What was written before is read once, and not
    /// again after the engine was away.
    fn expect(&mut self, id: &str) {
        let mut seen = self.seen.lock();
        if seen.id != id {
            // Another container has the name now, and its output is read from its start.
            if self.attached {
                self.text.restart();
            }
            self.attached = false;
            *seen = SeenSoFar { id: id.to_owned(), bytes: 0 };
        }
        self.reported = if self.attached { 0 } else { std::mem::take(&mut seen.bytes) };
        self.text.set_age(if self.attached { Age::New } else { Age::Old });
    }

    /// Takes a piece of the output.
    fn take(&mut self, stream: Stream, text: &[u8]) {
        let reported = usize::try_from(self.reported).unwrap_or(usize::MAX).min(text.len());
        let (before, rest) = text.split_at(reported);
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut seen = self.seen.lock();
        if !before.is_empty() {
            self.text.recall_from(stream, before);
            self.reported -= length(before);
        }
        if !rest.is_empty() {
            self.text.feed_from(stream, rest);
        }
        seen.bytes = seen.bytes.saturating_add(length(text));
    }

    /// What comes from here on is being written now.
    fn catch_up(&mut self) {
        // The engine may have dropped what was written first, so that there was less than expected.
        self.reported = 0;
        self.text.set_age(Age::New);
    }
}
