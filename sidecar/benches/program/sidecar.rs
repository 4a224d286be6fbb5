//! The measured program.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use paceline_reporter::wire::Progress;

use crate::process::{MOMENT, Process};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline-sidecar");
/// Maximum number of polls before giving up.
const MAX_POLLS: u32 = 30_000;

/// A running sidecar.
#[derive(Debug)]
pub(crate) struct Sidecar {
    process: Process,
    socket: PathBuf,
}

impl Sidecar {
    /// Starts one with these arguments and its socket in `folder`. It may not serve yet.
    pub(crate) fn spawn<'a>(
        folder: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let socket = folder.join("sidecar.sock");
        let listen = format!("unix:{}", socket.display());
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("PACELINE_LISTEN", listen);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { process: Process::start(&mut command)?, socket })
    }

    /// Starts one and waits until it serves.
    pub(crate) fn start<'a>(
        folder: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let sidecar = Self::spawn(folder, arguments)?;
        sidecar.serves(Duration::from_millis(1))?;
        Ok(sidecar)
    }

    /// Waits until it serves; polls with this period.
    pub(crate) fn serves(&self, period: Duration) -> io::Result<()> {
        for _ in 0..MAX_POLLS {
            if self.ask("/healthz").is_ok_and(|answer| answer.contains(" 200 ")) {
                return Ok(());
            }
            thread::park_timeout(period);
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// The progress that it publishes.
    pub(crate) fn progress(&self) -> io::Result<Progress> {
        let answer = self.ask("/v1/progress")?;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        Ok(serde_json::from_str(body)?)
    }

    /// Waits until the progress satisfies `holds`; polls with this period.
    pub(crate) fn until(
        &mut self,
        period: Duration,
        holds: impl Fn(&Progress) -> bool,
    ) -> io::Result<()> {
        for _ in 0..MAX_POLLS {
            if holds(&self.progress()?) {
                self.process.peak()?;
                return Ok(());
            }
            thread::park_timeout(period);
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Waits until its source has read so many bytes.
    pub(crate) fn has_read(&mut self, bytes: u64) -> io::Result<()> {
        self.until(2 * MOMENT, |progress| {
            let sources = progress.sidecar.iter().flat_map(|sidecar| &sidecar.sources);
            sources.map(|source| source.bytes).sum::<u64>() >= bytes
        })
    }

    /// Its standard input; can be taken once.
    pub(crate) fn stdin(&mut self) -> io::Result<ChildStdin> {
        self.process.stdin()
    }

    /// Its process.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn ask(&self, page: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        write!(stream, "GET {page} HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
