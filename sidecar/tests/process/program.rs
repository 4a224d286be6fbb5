//! Runs the program in its own folder.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use paceline_reporter::wire::Progress;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A folder for a socket and files.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paceline-sidecar"));
        let socket = format!("unix:{}", self.path("sidecar.sock").display());
        command.args(words).env("PACELINE_LISTEN", socket).stderr(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).stderr(Stdio::piped()).output().unwrap()
    }

    /// Sends a request; `None` without an answer.
    pub(crate) fn ask(&self, request: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.path("sidecar.sock")).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        let answer = self.ask("GET /v1/progress HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Waits until the progress satisfies `holds`.
    pub(crate) fn until(&self, holds: impl Fn(&Progress) -> bool) -> Progress {
        wait_for(|| self.progress().filter(&holds))
    }
}

/// Waits until `look` returns a value; fails after a minute.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let mut looks = (0..6000).map(|_| {
        std::thread::park_timeout(Duration::from_millis(10));
        look()
    });
    looks.find_map(|found| found).expect("it happens within a minute")
}

/// A child process that is killed at the end of its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Writes to the end of a file.
pub(crate) fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A line of a trainer's log.
pub(crate) fn line(step: u32) -> String {
    format!("iter {step}: loss {:.4}, time 20.00ms, mfu 3.21%\n", 5.0 / f64::from(step + 1))
}
