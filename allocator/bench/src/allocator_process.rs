//! The allocator under test, run as a separate process as in production.
//!
//! It is this same program, started as `paceline run` for the containers of this bench only. The
//! bench reads what it observed and did from the files that it writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use paceline_api::nodes::Node;
use paceline_api::samples::Sample;
use paceline_node::limits::originals::Originals;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::log_tail::log_tail;
use super::schedule::Arm;
use super::tail::Tail;

/// This program itself. The link works even if the file was rebuilt or removed meanwhile.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// How long it may take until the first sample: the daemon starts in well under a second.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long restoring every limit may take after SIGTERM: one update takes about 30 ms.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The allocator's state folder, inside the run's folder: original limits and the audit log.
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
    /// The container engine's address; `None` is the default one.
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

    /// Starts an allocator with the settings of `arm`. Its samples, frames, audit log and own log go
    /// into `folder`, which is empty.
    pub(crate) fn start(&self, arm: &Arm, folder: &Path) -> anyhow::Result<AllocatorProcess> {
        self.start_with(arm, folder, &[])
    }

    /// Starts an allocator that only observes: it records limits, and writes none.
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
        // Created here so that this user owns it and can remove it, whatever user the allocator runs as.
        drop(Originals::open(&folder.join(STATE), &self.engine, "a bench")?);
        let child = Command::new(PROGRAM)
            .arg0("paceline")
            .args(self.host.iter().flat_map(|host| ["--host", host]))
            .args(["run", "--listen", "none", "--control", "none"])
            .args(arguments(arm, &self.nodes))
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
    /// Waits for its first samples, and returns them.
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
        let ready = timeout(READY_TIMEOUT, first).await;
        ready.unwrap_or_else(|_| {
            bail!("the allocator wrote no sample within {READY_TIMEOUT:?}\n{}", log_tail(&self.log))
        })
    }

    /// The samples since the last call; fails when the allocator has ended.
    pub(crate) fn samples(&mut self) -> anyhow::Result<Vec<Sample>> {
        let samples = self.samples.poll()?;
        match self.child.try_wait().context("cannot watch the allocator")? {
            Some(status) => Err(self.ended(status)),
            None => Ok(samples),
        }
    }

    /// Asks it to restore every limit and to end, and waits until it has ended.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.pid() {
            kill_process(pid, Signal::TERM).context("cannot end the allocator")?;
        }
        let Ok(status) = timeout(STOP_TIMEOUT, self.child.wait()).await else {
            self.child.kill().await.context("cannot kill the allocator")?;
            bail!(
                "the allocator did not end within {STOP_TIMEOUT:?} and was killed\n{}",
                log_tail(&self.log)
            );
        };
        let status = status.context("cannot wait for the allocator")?;
        if !status.success() {
            return Err(self.ended(status));
        }
        self.keep_audit()
    }

    /// Moves the audit log out of the allocator's state folder and removes the rest of it.
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
        keep().with_context(|| format!("cannot remove {}", state.display()))
    }

    /// `None` once it has ended: its process id may belong to another process by now.
    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    fn ended(&self, status: ExitStatus) -> anyhow::Error {
        anyhow::anyhow!("the allocator ended with {status}\n{}", log_tail(&self.log))
    }
}

/// The arguments of `paceline run` for an arm on `nodes`.
fn arguments(arm: &Arm, nodes: &[Node]) -> Vec<String> {
    let one = |name: &str, value: String| [format!("--{name}"), value];
    let Arm { variant, enforcement, migration, params, .. } = arm;
    let mut all: Vec<String> = one("policy", arm.policy_to_run().to_owned()).into();
    all.extend(one("variant", variant.to_string()));
    all.extend(one("enforcement", enforcement.to_string()));
    all.extend(migration.iter().flat_map(|how| one("migration", how.to_string())));
    all.extend(params.iter().flat_map(|(name, value)| one("param", format!("{name}={value}"))));
    all.extend(nodes.iter().flat_map(|node| one("node", node.to_string())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm_becomes_arguments_of_run() {
        let arm = Arm::new("oracle", [("interval".to_owned(), 30.0)].into());
        assert_eq!(
            arguments(&arm, &["a=0-1".parse().unwrap()]).join(" "),
            "--policy srpt --variant resolved --enforcement quota --param interval=30 --node a=0-1"
        );
    }
}
