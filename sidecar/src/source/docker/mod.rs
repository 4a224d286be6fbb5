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
use std::sync::Arc;
use std::time::Duration;

use paceline_grammar::Patterns;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::engine::{Engine, EngineError, check};
use self::frames::Frames;
use crate::job::{Age, Job};
use crate::merger::{Kind, SourceId};
use crate::say::say;
use crate::source::text::Text;

/// Wait before attaching again after a failure.
const ATTACH_BACKOFF: Duration = Duration::from_secs(1);
/// An incomplete line is read after this much silence.
const SILENCE: Duration = Duration::from_millis(40);
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
    /// The failure that was said last.
    said: Option<String>,
}

impl Container {
    /// The container with this name or id, which need not exist yet. An error names what is invalid:
    /// the engine's address, or the name.
    pub fn new(job: &Arc<Job>, name: &str, patterns: &Patterns) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        check(name).map_err(invalid)?;
        let engine = Engine::from_environment().map_err(invalid)?;
        Ok(Self::of_engine(engine, job, name, patterns))
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
        // What was written before is read once, and not again after the engine was away. It ends with the
        // first silence.
        self.text.set_age(if self.attached { Age::New } else { Age::Old });
        let mut output = self.engine.attach(&self.name, !self.attached).await?;
        let mut frames = Frames::new(before.tty());
        self.attached = true;
        self.said = None;
        self.job.describe(self.source, |known| {
            known.up = true;
            known.error = None;
        });
        let mut chunk = vec![0; CHUNK];
        loop {
            match timeout(SILENCE, output.read(&mut chunk)).await {
                // The engine ends a stream with an error as well. The container's state decides, and the
                // next attachment reports what is still wrong.
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(read)) => {
                    let bytes = chunk.get(..read).unwrap_or_default();
                    frames.feed(bytes, |stream, text| self.text.feed_from(stream, text));
                }
                Err(_) => {
                    self.text.flush();
                    self.text.set_age(Age::New);
                }
            }
        }
        Ok(self.engine.inspect(&self.name).await?.ended())
    }
}
