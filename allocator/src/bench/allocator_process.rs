//! The allocator under test, as the process of its own that it is in use.
//!
//! It is the same program, started as `paceline run` for the containers of this bench alone. What
//! it sees and does is read from the files that it writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::log_tail::log_tail;
use super::schedule::Arm;
use super::tail::Tail;
use crate::actuate::originals::Originals;
use crate::nodes::Node;
use crate::samples::Sample;

/// This program itself, also where its file was built anew or removed in the meantime.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// How long it may take until the first sample: the daemon starts in well under a second.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long putting every limit back may take after SIGTERM: an update takes some 30 ms.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// The allocator's own folder, within that of a run: original limits and the audit log.
const STATE: &str = "state";

/// A running allocator.
#[derive(Debug)]
pub(crate) struct AllocatorProcess {
    child: Child,
    samples: Tail,
    log: PathBuf,
    /// Where its files go.
    folder: PathBuf,
}

/// How allocators are started for one bench.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// The engine's address, unless it is the usual one.
    host: Option<String>,
    /// What the bench's containers are labelled with, `name=value`.
    label: String,
    nodes: Vec<Node>,
    /// The engine's own id.
    engine: String,
}

impl Launcher {
    pub(crate) fn new(
        host: Option<String>,
        label: String,
        nodes: Vec<Node>,
        engine: String,
    ) -> Self {
        Self { host, label, nodes, engine }
    }

    /// Starts an allocator that is set as `arm` says. Its samples, frames, audit log and own log go
    /// into `folder`, which is empty.
    pub(crate) fn start(&self, arm: &Arm, folder: &Path) -> anyhow::Result<AllocatorProcess> {
        self.start_with(arm, folder, &[])
    }

    /// The same, of one that writes nothing: limits are what others make them, and it tells of that.
    pub(crate) fn watch(&self, arm: &Arm, folder: &Path) -> anyhow::Result<AllocatorProcess> {
        self.start_with(arm, folder, &["--dry-run"])
    }

    fn start_with(
        &self,
        arm: &Arm,
        folder: &Path,
        more: &[&str],
    ) -> anyhow::Result<AllocatorProcess> {
        let (samples, log) = (folder.join("samples.jsonl"), folder.join("allocator.log"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        // Made here, it is this user's, who is to clear it away, whoever the allocator runs as.
        drop(Originals::open(&folder.join(STATE), &self.engine, "a bench")?);
        let child = Command::new(PROGRAM)
            .arg0("paceline")
            .args(self.host.iter().flat_map(|host| ["--host", host]))
            .args(["run", "--listen", "none", "--control", "none"])
            .args(words(arm, &self.nodes))
            .args(more)
            .args(["--with-label", &self.label])
            .arg("--state-dir")
            .arg(folder.join(STATE))
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
        let folder = folder.to_owned();
        Ok(AllocatorProcess { child, samples: Tail::new(&samples), log, folder })
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
        if !status.success() {
            return Err(self.ended(status));
        }
        self.keep_audit()
    }

    /// Of what the allocator kept for itself, the audit log stays; the rest has served its purpose.
    fn keep_audit(&self) -> anyhow::Result<()> {
        let state = self.folder.join(STATE);
        let keep = || {
            for entry in fs::read_dir(&state)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    fs::rename(&path, self.folder.join(path.file_name().unwrap_or_default()))?;
                }
            }
            fs::remove_dir_all(&state)
        };
        keep().with_context(|| format!("cannot clear away {}", state.display()))
    }

    /// None once it was seen to have ended: the number may be another process's by now.
    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    fn ended(&self, status: ExitStatus) -> anyhow::Error {
        anyhow::anyhow!("the allocator ended with {status}\n{}", log_tail(&self.log))
    }
}

/// The words by which `paceline run` is told of an arm on `nodes`.
fn words(arm: &Arm, nodes: &[Node]) -> Vec<String> {
    let one = |name: &str, value: String| [format!("--{name}"), value];
    let Arm { variant, enforcement, migration, params, .. } = arm;
    let mut words: Vec<String> = one("policy", arm.policy_to_run().to_owned()).into();
    words.extend(one("variant", variant.to_string()));
    words.extend(one("enforcement", enforcement.to_string()));
    words.extend(migration.iter().flat_map(|how| one("migration", how.to_string())));
    words.extend(params.iter().flat_map(|(name, value)| one("param", format!("{name}={value}"))));
    words.extend(nodes.iter().flat_map(|node| one("node", node.to_string())));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_told_in_words() {
        let arm = Arm::new("oracle", [("interval".to_owned(), 30.0)].into());
        assert_eq!(
            words(&arm, &["a=0-1".parse().unwrap()]).join(" "),
            "--policy srpt --variant resolved --enforcement quota --param interval=30 --node a=0-1"
        );
    }
}
