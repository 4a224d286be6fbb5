//! A container's output, by attaching to it: the engine's log holds a bar back until its line ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::query_parameters::{AttachContainerOptionsBuilder, InspectContainerOptions};
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use crate::desk::{Kind, SourceId};
use crate::grammar::Patterns;
use crate::job::Job;
use crate::source::text::Text;
use crate::terminal::wrapping::Stream;

/// After a failure, the engine is asked again after this time.
const PAUSE: Duration = Duration::from_secs(1);
/// A line that has not ended is read after this silence.
const SILENCE: Duration = Duration::from_millis(40);

/// A container that is attached to.
#[derive(Debug)]
pub struct Container {
    job: Arc<Job>,
    name: String,
    source: SourceId,
    text: Text,
    /// What it wrote before has been read.
    attached: bool,
}

impl Container {
    /// The container of this name or id, which need not be there yet.
    pub fn new(job: &Arc<Job>, name: &str, patterns: &Patterns) -> Self {
        let source = job.add(Kind::Text, format!("docker:{name}"));
        Self {
            job: Arc::clone(job),
            name: name.to_owned(),
            source,
            text: Text::new(Arc::clone(job), source, patterns.clone()),
            attached: false,
        }
    }

    /// Reads until `stop` or the container's end; whether it ended well, if it ended.
    pub async fn run(mut self, stop: &AtomicBool) -> Option<bool> {
        while !stop.load(Ordering::Relaxed) {
            match self.attach(stop).await {
                Ok(Some(well)) => return Some(well),
                Ok(None) => {}
                Err(error) => self.job.describe(self.source, |known| {
                    known.up = false;
                    known.error = Some(error.to_string());
                }),
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// Reads as long as the engine tells; how the container ended, if it has.
    async fn attach(&mut self, stop: &AtomicBool) -> Result<Option<bool>, bollard::errors::Error> {
        let docker = Docker::connect_with_defaults()?;
        // What was written before is read once, and not again after the engine was away.
        let options = AttachContainerOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .stream(true)
            .logs(!self.attached)
            .build();
        let mut output = docker.attach_container(&self.name, Some(options)).await?.output;
        self.attached = true;
        self.job.describe(self.source, |known| {
            known.up = true;
            known.error = None;
        });
        while !stop.load(Ordering::Relaxed) {
            match timeout(SILENCE, output.next()).await {
                Ok(Some(piece)) => match piece? {
                    LogOutput::StdErr { message } => {
                        self.text.feed_from(Stream::Stderr, &message);
                    }
                    LogOutput::StdOut { message }
                    | LogOutput::StdIn { message }
                    | LogOutput::Console { message } => {
                        self.text.feed_from(Stream::Stdout, &message);
                    }
                },
                Ok(None) => break,
                Err(_) => self.text.flush(),
            }
        }
        self.text.finish();
        let state =
            docker.inspect_container(&self.name, None::<InspectContainerOptions>).await?.state;
        let ended = state.filter(|state| state.running == Some(false));
        Ok(ended.map(|state| state.exit_code == Some(0)))
    }
}
