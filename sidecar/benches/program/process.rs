//! A child that is measured by what the kernel says of it, and ended with this.

use std::fs;
use std::io;
use std::process::{Child, ChildStdin, Command};
use std::thread;
use std::time::Duration;

/// The kernel tells CPU time in so many ticks a second, on every Linux.
const TICKS: f64 = 100.0;
/// A page of `/proc` is looked at again after this time.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

/// A child, and the most memory that it was seen with.
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

    /// Where it reads from, if that is piped; once.
    pub(crate) fn stdin(&mut self) -> io::Result<ChildStdin> {
        self.child.stdin.take().ok_or_else(|| io::Error::other("its input is not piped"))
    }

    /// The seconds of CPU that it has used, by all its threads; also once it has ended.
    pub(crate) fn cpu(&self) -> io::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name before may hold anything but this.
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let ticks =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / TICKS)
    }

    /// The most memory that it had at a time so far, in MiB.
    pub(crate) fn peak(&mut self) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        // One that has ended has none any more.
        self.peak = self.peak.max(kib.unwrap_or_default() / 1024.0);
        Ok(self.peak)
    }

    /// Waits for its end; what it used can be asked for still.
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
