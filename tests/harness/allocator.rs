use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::bed::Bed;
use crate::image::program;
use crate::wait::{PATIENCE, times_longer, until};

/// `paceline run`, started as a user would, on the containers of one bed only.
#[derive(Debug)]
pub struct Allocator {
    child: Child,
    said: Arc<Mutex<String>>,
    _reader: JoinSet<()>,
}

impl Allocator {
    /// `paceline` with the given words, ready to be run.
    pub fn command(words: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program("paceline")?);
        command.args(words).kill_on_drop(true);
        Ok(command)
    }

    /// What comes of a command whose reader has left.
    pub async fn unread(words: &[&str]) -> anyhow::Result<Output> {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        Ok(Self::command(words)?.stdout(writer).output().await?)
    }

    /// Where a bed's allocator keeps original limits.
    pub fn state(bed: &Bed) -> PathBuf {
        bed.file("state")
    }

    /// Where a bed's allocator is asked and told.
    pub fn control(bed: &Bed) -> PathBuf {
        bed.file("control.sock")
    }

    /// Starts the allocator with `args` beside those that confine it to the bed.
    pub fn run(bed: &Bed, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = Self::running(bed)?;
        command.args(["--listen", "none"]).args(args);
        Self::spawn(command)
    }

    /// `paceline run`, confined to the bed, ready to be told more and to be run.
    pub fn running(bed: &Bed) -> anyhow::Result<Command> {
        let mut command = Self::command(&["run", "--with-label", &bed.label()])?;
        command.arg("--state-dir").arg(Self::state(bed));
        command.arg("--control").arg(Self::control(bed));
        Ok(command)
    }

    /// Starts any command of `paceline` and keeps what it says on stderr.
    pub fn spawn(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let stderr = child.stderr.take().context("stderr is piped")?;
        let said = Arc::new(Mutex::new(String::new()));
        let mut reader = JoinSet::new();
        let saying = Arc::clone(&said);
        reader.spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut said = saying.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
            }
        });
        Ok(Self { child, said, _reader: reader })
    }

    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it says all of `words` in one line.
    pub async fn says(&self, words: &[&str]) -> anyhow::Result<()> {
        let line = |line: &str| words.iter().all(|word| line.contains(word));
        let what = format!("the allocator says {words:?}");
        let heard = until(&what, || async { Ok(self.said().lines().any(line).then_some(())) });
        heard.await.with_context(|| self.said())
    }

    /// The process.
    pub fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("it has ended")
    }

    /// The most memory that it has held so far, in bytes.
    pub fn memory_peak(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("a process has a peak of memory")?.parse::<u64>()? * 1024)
    }

    /// Puts back what an allocator of this bed has left. Returns what the command says.
    pub async fn restore(bed: &Bed) -> anyhow::Result<String> {
        let mut command = Self::command(&["restore"])?;
        let output = command.arg("--state-dir").arg(Self::state(bed)).output().await?;
        anyhow::ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.id()?)?).context("no process has id 0")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let wait = tokio::time::timeout(PATIENCE * times_longer(), self.child.wait());
        Ok(wait.await.with_context(|| format!("it does not end: {}", self.said()))??)
    }

    /// Asks it to end by SIGTERM, and makes sure that it ends well.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        let status = self.ended().await?;
        anyhow::ensure!(status.success(), "it ended with {status}: {}", self.said());
        Ok(())
    }
}

/// Reads a file of JSON lines.
pub fn json_lines(path: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
