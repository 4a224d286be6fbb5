//! The allocator under test, as the process of its own that it is in use.
//!
//! It is the same program, started as `paceline run` for the containers of this bench alone. What
//! it sees and does is read from the files that it writes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::log_tail::log_tail;
use super::tail::Tail;
use crate::samples::Sample;

/// How long it may take until the first sample: the daemon starts in well under a second.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long putting every limit back may take after SIGTERM: an update takes some 30 ms.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// A running allocator.
#[derive(Debug)]
pub(crate) struct AllocatorProcess {
    child: Child,
    samples: Tail,
    log: PathBuf,
}

/// How allocators are started for one bench.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// The engine's address, unless it is the usual one.
    host: Option<String>,
    /// What the bench's containers are labelled with, `name=value`.
    label: String,
}

impl Launcher {
    pub(crate) fn new(host: Option<String>, label: String) -> Self {
        Self { host, label }
    }

    /// Starts `policy` with `params`, each `name=value`. Its samples, frames and log go into
    /// `folder`.
    pub(crate) fn start(
        &self,
        policy: &str,
        params: &[String],
        folder: &Path,
    ) -> anyhow::Result<AllocatorProcess> {
        let (samples, log) = (folder.join("samples.jsonl"), folder.join("allocator.log"));
        // What an earlier bench left in the samples would be taken for this run's.
        empty(&samples)?;
        let file = empty(&log)?;
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let child = Command::new(program)
            .args(self.host.iter().flat_map(|host| ["--host", host]))
            .args(["run", "--listen", "none", "--control", "none", "--policy", policy])
            .args(params.iter().flat_map(|param| ["--param", param]))
            .args(["--with-label", &self.label])
            .arg("--samples")
            .arg(&samples)
            .arg("--record")
            .arg(folder.join("frames.jsonl"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C in a terminal goes to the whole group; the bench ends its child in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the allocator")?;
        Ok(AllocatorProcess { child, samples: Tail::new(&samples), log })
    }
}

impl AllocatorProcess {
    /// Waits until it has written its first samples, and gives them.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<Vec<Sample>> {
        let first = async {
            loop {
                let samples = self.samples()?;
                if !samples.is_empty() {
                    return Ok(samples);
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        let ready = timeout(READY_WITHIN, first).await;
        ready.unwrap_or_else(|_| {
            bail!("the allocator wrote no sample within {READY_WITHIN:?}\n{}", log_tail(&self.log))
        })
    }

    /// The samples that are new; fails when the allocator has ended.
    pub(crate) fn samples(&mut self) -> anyhow::Result<Vec<Sample>> {
        let samples = self.samples.poll()?;
        match self.child.try_wait().context("cannot watch the allocator")? {
            Some(status) => Err(self.ended(status)),
            None => Ok(samples),
        }
    }

    /// Asks it to put every limit back and to end, and waits until it has.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.pid() {
            kill_process(pid, Signal::TERM).context("cannot end the allocator")?;
        }
        let Ok(status) = timeout(STOPS_WITHIN, self.child.wait()).await else {
            self.child.kill().await.context("cannot kill the allocator")?;
            bail!(
                "the allocator did not end within {STOPS_WITHIN:?} and was killed\n{}",
                log_tail(&self.log)
            );
        };
        let status = status.context("cannot wait for the allocator")?;
        if status.success() { Ok(()) } else { Err(self.ended(status)) }
    }

    /// None once it was seen to have ended: the number may be another process's by now.
    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    fn ended(&self, status: ExitStatus) -> anyhow::Error {
        anyhow::anyhow!("the allocator ended with {status}\n{}", log_tail(&self.log))
    }
}

fn empty(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}
