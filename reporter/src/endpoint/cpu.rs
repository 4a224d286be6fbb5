//! The CPU that this process may use, and how much of it is refused: what its control group says.

mod group;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use paceline_wire::Cpu;

use self::group::{Groups, Stat};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// The least time between two readings of the files, in seconds.
const MIN_INTERVAL: f64 = 1.0;

/// Reads the CPU on request, at most once a second.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter(Mutex<Option<Reading>>);

/// The last reading of the files.
#[derive(Debug)]
struct Reading {
    at: f64,
    stat: Option<Stat>,
    cpu: Cpu,
}

impl CpuMeter {
    /// The CPU at `now`, in seconds by a clock that never goes back.
    pub(crate) fn read(&self, now: f64) -> Cpu {
        self.read_by(now, || {
            let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            Groups::find(Path::new(ROOT), &groups)
        })
    }

    fn read_by(&self, now: f64, find: impl FnOnce() -> Groups) -> Cpu {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| now - last.at < MIN_INTERVAL) {
            return last.cpu;
        }
        let groups = find();
        let stat = groups.stat();
        let before = last.as_ref().and_then(|last| last.stat);
        // The standard library considers quota and affinity, and rounds as a thread pool should.
        let threads = thread::available_parallelism().ok();
        let cpu = Cpu {
            quota: groups.quota(),
            threads: threads.and_then(|threads| u32::try_from(threads.get()).ok()),
            periods: stat.map(|stat| stat.periods),
            throttled_periods: stat.map(|stat| stat.throttled_periods),
            throttled_seconds: stat.map(|stat| stat.throttled_seconds),
            throttled_ratio: stat.and_then(|stat| stat.ratio_since(before.unwrap_or_default())),
            pressure: groups.pressure(),
        };
        *last = Some(Reading { at: now, stat, cpu });
        cpu
    }
}

#[cfg(test)]
mod tests;
