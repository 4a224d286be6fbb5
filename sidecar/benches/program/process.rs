//! A child process that is measured through `/proc` and killed on drop.

use std::fs;
use std::io;
use std::process::{Child, ChildStdin, Command};
use std::thread;
use std::time::Duration;

/// The kernel reports CPU time in ticks; there are so many per second on every Linux.
const TICKS: f64 = 100.0;
/// Polling period of `/proc`.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

/// A child and its peak memory in MiB.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    peak: f64,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.spawn()?, peak: 0.0 })
    }

    /// Its standard input, if piped; can be taken once.
    pub(crate) fn stdin(&mut self) -> io::Result<ChildStdin> {
        self.child.stdin.take().ok_or_else(|| io::Error::other("standard input is not piped"))
    }

    /// The CPU time of all its threads in seconds; also after it has ended.
    pub(crate) fn cpu(&self) -> io::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The process name before may contain anything but this.
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let ticks =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / TICKS)
    }

    /// Its peak memory so far, in MiB.
    pub(crate) fn peak(&mut self) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        // The value is missing after its end.
        self.peak = self.peak.max(kib.unwrap_or_default() / 1024.0);
        Ok(self.peak)
    }

    /// Waits for its end, without reaping it: its usage can still be read.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        loop {
            let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
            if status.lines().any(|line| line.starts_with("State:\tZ")) {
                return Ok(());
            }
            self.peak()?;
            thread::park_timeout(MOMENT);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
