//! What a training loop says that it is at.

use std::sync::atomic::{AtomicU8, Ordering};

/// What a training loop is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It makes steps.
    Training,
    /// It looks at held-out data.
    Evaluating,
    /// It writes a checkpoint.
    Checkpointing,
}

/// A [`Doing`] that any thread may read or set.
#[derive(Debug, Default)]
pub(crate) struct NowDoing(AtomicU8);

impl NowDoing {
    pub(crate) fn get(&self) -> Doing {
        match self.0.load(Ordering::Relaxed) {
            0 => Doing::Training,
            1 => Doing::Evaluating,
            _ => Doing::Checkpointing,
        }
    }

    pub(crate) fn set(&self, doing: Doing) {
        let word = match doing {
            Doing::Training => 0,
            Doing::Evaluating => 1,
            Doing::Checkpointing => 2,
        };
        self.0.store(word, Ordering::Relaxed);
    }
}
