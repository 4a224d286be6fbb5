//! A bound on what one run costs. The numbers of a scenario can make it all but endless: a long job
//! under a policy with a short interval, or many jobs.
//!
//! The bound counts what is computed, not time: the same scenario is refused on every machine.

use crate::scenario::ScenarioError;

/// The most jobs that all decisions, samples and other events of one run look at: minutes of
/// computing.
const MAX_EFFORT: u64 = 1_000_000_000;
/// The most bytes of recorded frames and decisions, which are held in memory.
const MAX_RECORDED: usize = 512 << 20;

/// What a run may still compute and record.
#[derive(Debug)]
pub(crate) struct Effort {
    left: u64,
    recordable: usize,
}

/// A run would cost too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Default for Effort {
    fn default() -> Self {
        Self::new(MAX_EFFORT)
    }
}

impl Effort {
    /// An effort of at most this many looks at a job.
    pub(crate) fn new(left: u64) -> Self {
        Self { left, recordable: MAX_RECORDED }
    }

    /// Takes off one event that looks at so many jobs.
    pub(crate) fn spend(&mut self, jobs: usize) -> Result<(), TooMuch> {
        let cost = u64::try_from(jobs).unwrap_or(u64::MAX).saturating_add(1);
        self.left = self.left.checked_sub(cost).ok_or(TooMuch)?;
        if self.recordable == 0 { Err(TooMuch) } else { Ok(()) }
    }

    /// Takes off the bytes of a recorded line.
    pub(crate) fn record(&mut self, bytes: usize) {
        self.recordable = self.recordable.saturating_sub(bytes);
    }
}

/// The error of a run that had come to `second` when it was too much.
pub(crate) fn too_long(run: &str, second: f64) -> ScenarioError {
    ScenarioError::TooLong { run: run.to_owned(), second, most: MAX_EFFORT }
}
