use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::image::program;
use crate::test_env::TestEnv;
use crate::wait::{WAIT_TIMEOUT, times_longer, until};

/// The variable with the folder of the machine's locks.
pub const LOCKS: &str = "PACELINE_LOCKS";

/// `paceline run`, started as a user would, on one test's containers only.
#[derive(Debug)]
pub struct Allocator {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: JoinSet<()>,
}

impl Allocator {
    /// `paceline` with the given words, ready to be run.
    pub fn command(words: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program("paceline")?);
        command.args(words).env(LOCKS, Self::locks()?).kill_on_drop(true);
        Ok(command)
    }

    /// The folder of the locks of all tests of a build, for the variable [`LOCKS`]. Tests leave the
    /// machine's own locks alone.
    pub fn locks() -> anyhow::Result<PathBuf> {
        Ok(program("paceline")?.with_file_name("test-locks"))
    }

    /// Runs a command whose output nothing reads; returns its result.
    pub async fn unread(words: &[&str]) -> anyhow::Result<Output> {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        Ok(Self::command(words)?.stdout(writer).output().await?)
    }

    /// The state folder of a test's allocator, with the original limits.
    pub fn state(env: &TestEnv) -> PathBuf {
        env.file("state")
    }

    /// The control socket of a test's allocator.
    pub fn control(env: &TestEnv) -> PathBuf {
        env.file("control.sock")
    }

    /// Starts the allocator with `args`, confined to the test's containers.
    pub fn run(env: &TestEnv, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = Self::running(env)?;
        command.args(["--listen", "none"]).args(args);
        Self::spawn(command)
    }

    /// `paceline run`, confined to the test's containers, to which options can be added.
    pub fn running(env: &TestEnv) -> anyhow::Result<Command> {
        let mut command = Self::command(&["run", "--with-label", &env.label()])?;
        command.arg("--state-dir").arg(Self::state(env));
        command.arg("--control").arg(Self::control(env));
        Ok(command)
    }

    /// Starts any command of `paceline` and keeps its standard error.
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
        Ok(Self { child, said, reader })
    }

    /// Its standard error so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until one line of its standard error has all of `words`.
    pub async fn says(&self, words: &[&str]) -> anyhow::Result<()> {
        let line = |line: &str| words.iter().all(|word| line.contains(word));
        let what = format!("the allocator says {words:?}");
        let heard = until(&what, || async { Ok(self.said().lines().any(line).then_some(())) });
        heard.await.with_context(|| self.said())
    }

    /// The id of its process.
    pub fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("it has ended")
    }

    /// Its peak memory so far, in bytes.
    pub fn memory_peak(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("a process has a peak of memory")?.parse::<u64>()? * 1024)
    }

    /// Runs `paceline restore` for this test's allocator; returns its output.
    pub async fn restore(env: &TestEnv) -> anyhow::Result<String> {
        let mut command = Self::command(&["restore"])?;
        let output = command.arg("--state-dir").arg(Self::state(env)).output().await?;
        anyhow::ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.id()?)?).context("no process has id 0")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for its end. [`said`](Self::said) is complete then.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let ended = async {
            let status = self.child.wait().await?;
            // Its last lines may be read after its end is seen.
            self.reader.join_next().await;
            anyhow::Ok(status)
        };
        let ended = tokio::time::timeout(WAIT_TIMEOUT * times_longer(), ended).await;
        ended.with_context(|| format!("it does not end: {}", self.said()))?
    }

    /// Ends it by SIGTERM; fails unless it exits with 0.
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
