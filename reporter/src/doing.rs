//! What a training loop is doing, as it reports it.

use std::sync::atomic::{AtomicU8, Ordering};

/// What a training loop is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// It makes steps.
    Training,
    /// It evaluates held-out data.
    Evaluating,
    /// It writes a checkpoint.
    Checkpointing,
}

/// A [`Task`] that any thread may read or set.
#[derive(Debug, Default)]
pub(crate) struct NowDoing(AtomicU8);

impl NowDoing {
    pub(crate) fn get(&self) -> Task {
        match self.0.load(Ordering::Relaxed) {
            0 => Task::Training,
            1 => Task::Evaluating,
            _ => Task::Checkpointing,
        }
    }

    pub(crate) fn set(&self, task: Task) {
        let word = match task {
            Task::Training => 0,
            Task::Evaluating => 1,
            Task::Checkpointing => 2,
        };
        self.0.store(word, Ordering::Relaxed);
    }
}
