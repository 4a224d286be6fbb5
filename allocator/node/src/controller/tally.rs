//! Counts what control has cost so far.

use std::path::Path;

use paceline_api::live::snapshot::CostView;
use paceline_cgroup::own;
use paceline_policy::limiter::Counters;

use crate::migration::{Ended, MigrationResult};

/// Counters since the run began; times in seconds.
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
    /// Counts a move, whether it succeeded or not.
    pub(super) fn moved(&mut self, result: &MigrationResult) {
        let moved = result.ended == Ended::Moved;
        self.moves += u64::from(moved);
        self.failed_moves += u64::from(!moved);
        self.move_seconds += result.cost.unwrap_or_default();
    }

    /// All counters, with this process's own use of CPU and memory.
    pub(super) fn view(&self, proc: &Path, guards: Counters) -> CostView {
        let (cpu_seconds, memory) = own::used(proc);
        let guards =
            [("slew", guards.slewed), ("fairness", guards.raised), ("canary", guards.rolled_back)];
        CostView {
            cpu_seconds: cpu_seconds.unwrap_or_default(),
            memory,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_use_and_every_guard_are_shown() {
        let view = Tally::default().view(Path::new("/proc"), Counters::default());
        assert!(view.memory.is_some_and(|bytes| bytes > 1e5), "{view:?}");
        assert_eq!(view.guard_actions.len(), 3);
    }
}
