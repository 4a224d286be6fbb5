//! What control has cost so far.

use std::fs;
use std::path::Path;

use paceline_policy::limiter::Counters;

use crate::live::snapshot::CostView;
use crate::migrate::{Ended, Trip};

/// Clock ticks in a second, as `/proc` counts: Linux fixes this at 100 towards programs.
const TICKS: f64 = 100.0;

/// What is counted as it happens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) writes: u64,
    pub(super) failed: u64,
    pub(super) seconds: f64,
    pub(super) drifts: u64,
    moves: u64,
    failed_moves: u64,
    move_seconds: f64,
}

impl Tally {
    /// A job was moved, or was not.
    pub(super) fn moved(&mut self, trip: &Trip) {
        let moved = trip.ended == Ended::Moved;
        self.moves += u64::from(moved);
        self.failed_moves += u64::from(!moved);
        self.move_seconds += trip.cost.unwrap_or_default();
    }

    /// All of it, this process's own use included.
    pub(super) fn view(&self, proc: &Path, guards: Counters) -> CostView {
        let read =
            |file: &str| fs::read_to_string(proc.join("self").join(file)).unwrap_or_default();
        let guards =
            [("slew", guards.slewed), ("fairness", guards.raised), ("canary", guards.rolled_back)];
        CostView {
            cpu_seconds: cpu_seconds(&read("stat")).unwrap_or_default(),
            memory: resident(&read("status")),
            writes: self.writes,
            failed_writes: self.failed,
            write_seconds: self.seconds,
            drifts: self.drifts,
            moves: self.moves,
            failed_moves: self.failed_moves,
            move_seconds: self.move_seconds,
            guard_actions: guards.map(|(guard, times)| (guard.to_owned(), times)).into(),
        }
    }
}

/// User and system time: the 14th and 15th field of `/proc/PID/stat`. The second one, in brackets,
/// may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: Vec<f64> = ticks.collect::<Result<_, _>>().ok()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// `VmRSS` of `/proc/PID/status`, which is in KiB.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (a ) (b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
        assert_eq!(resident("VmPeak:  9 kB\nVmRSS:\t  2048 kB\n"), Some(2_097_152.0));
        assert_eq!(resident(""), None);
    }

    #[test]
    fn this_very_process_has_used_memory() {
        let view = Tally::default().view(Path::new("/proc"), Counters::default());
        assert!(view.memory.is_some_and(|bytes| bytes > 1e5), "{view:?}");
        assert_eq!(view.guard_actions.len(), 3);
    }
}
