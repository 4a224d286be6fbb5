//! The record of requests and answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_wire::{Checkpoint, Direction, Kept};

/// The least time between two checkpoints to keep, in seconds: a loss that falls with every step
/// should not be saved with every step.
const MIN_KEEP_INTERVAL: f64 = 30.0;

/// Why a checkpoint is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A client asked for the state as it is now.
    Asked,
    /// The acceptable loss has been reached, or the loss is better than that of the kept checkpoint.
    /// Save it to a path of its own, so that no later and worse state replaces it.
    Keep,
}

/// All requests of a job and their answers.
#[derive(Debug, Default)]
pub(crate) struct CheckpointLog {
    /// The only word that a loop reads with every step.
    pending: AtomicBool,
    /// The number of the last request; they are counted from 1.
    requested: AtomicU64,
    /// A client has asked, besides the reporter itself.
    asked: AtomicBool,
    /// A checkpoint to keep is wanted.
    keep: AtomicBool,
    /// A loop is working on a request.
    taken: AtomicBool,
    /// Locked briefly for an answer or a reading, never by a step.
    answers: Mutex<Answers>,
}

#[derive(Clone, Debug, Default)]
struct Answers {
    answered: u64,
    saved: u64,
    last: Option<Saved>,
    error: Option<String>,
    kept: Option<Kept>,
    /// When a checkpoint to keep was last answered, whether it was saved or not.
    tried_to_keep_at: Option<f64>,
}

/// A checkpoint that was written.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) path: String,
    pub(crate) step: u64,
    pub(crate) loss: Option<f64>,
    pub(crate) at: f64,
}

impl CheckpointLog {
    /// Asks for a checkpoint; returns the request's number.
    pub(crate) fn ask(&self) -> u64 {
        self.asked.store(true, Ordering::Relaxed);
        self.want()
    }

    /// Asks for the checkpoint to keep at the acceptable loss.
    pub(crate) fn ask_to_keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
        self.want();
    }

    /// Continues with the checkpoint that an earlier process has kept.
    pub(crate) fn resume(&self, kept: Kept) {
        let mut answers = self.answers();
        answers.tried_to_keep_at = Some(kept.at);
        answers.kept = Some(kept);
    }

    /// Asks for another one to keep if `loss` at `now` is better than the kept one's, or if the first could
    /// not be saved. A save that fails may cost as much as one that succeeds, so both wait equally long.
    pub(crate) fn reconsider(&self, loss: Option<f64>, direction: Direction, now: f64) {
        if self.pending.load(Ordering::Relaxed) || self.taken.load(Ordering::Relaxed) {
            return;
        }
        let (kept, tried_at) = {
            let answers = self.answers();
            (answers.kept.as_ref().map(|kept| kept.loss), answers.tried_to_keep_at)
        };
        let (Some(loss), Some(tried_at)) = (loss, tried_at) else { return };
        let is_better = kept.is_none_or(|kept| direction.better(loss, kept));
        let better = is_better && now - tried_at >= MIN_KEEP_INTERVAL;
        if better {
            self.ask_to_keep();
        }
    }

    fn want(&self) -> u64 {
        let number = self.requested.fetch_add(1, Ordering::Relaxed) + 1;
        self.pending.store(true, Ordering::Release);
        number
    }

    /// Whether a request is waiting.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Takes all waiting requests: the number of the last one, and the reason. `None` if another thread
    /// is working on one, or if only a better checkpoint was wanted and `loss` is no longer better.
    pub(crate) fn take(&self, loss: Option<f64>, direction: Direction) -> Option<(u64, Reason)> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        self.pending.store(false, Ordering::Relaxed);
        let number = self.requested.load(Ordering::Acquire);
        let (asked, keep) = (take(&self.asked), take(&self.keep));
        let beaten = |kept: &Kept| !loss.is_some_and(|loss| direction.better(loss, kept.loss));
        let worth = keep && !self.answers().kept.as_ref().is_some_and(beaten);
        let reason = match (worth, asked) {
            (true, _) => Some(Reason::Keep),
            (false, true) => Some(Reason::Asked),
            (false, false) => None,
        };
        if reason.is_none() {
            self.answers().answered = number;
            self.taken.store(false, Ordering::Release);
        }
        reason.map(|reason| (number, reason))
    }

    /// Answers the request that was taken, at `now`.
    pub(crate) fn answer(
        &self,
        number: u64,
        reason: Reason,
        outcome: Result<Saved, String>,
        now: f64,
    ) {
        let mut answers = self.answers();
        answers.answered = number;
        if reason == Reason::Keep {
            answers.tried_to_keep_at = Some(now);
        }
        match outcome {
            Ok(saved) => {
                answers.saved += 1;
                answers.error = None;
                if let (Reason::Keep, Some(loss)) = (reason, saved.loss) {
                    let Saved { path, step, at, .. } = saved.clone();
                    answers.kept = Some(Kept { path, loss, step, at });
                }
                answers.last = Some(saved);
            }
            Err(error) => answers.error = Some(error),
        }
        drop(answers);
        self.taken.store(false, Ordering::Release);
    }

    /// The checkpoints as the progress shows them.
    pub(crate) fn read(&self) -> Checkpoint {
        let Answers { answered, saved, last, error, kept, .. } = self.answers().clone();
        Checkpoint {
            requested: self.requested.load(Ordering::Relaxed),
            answered,
            saved,
            step: last.as_ref().map(|last| last.step),
            loss: last.as_ref().and_then(|last| last.loss),
            at: last.as_ref().map(|last| last.at),
            path: last.map(|last| last.path),
            error,
            kept,
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(flag: &AtomicBool) -> bool {
    flag.swap(false, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(path: &str, loss: f64, at: f64) -> Saved {
        Saved { path: path.to_owned(), step: 7, loss: Some(loss), at }
    }

    fn take(book: &CheckpointLog, loss: f64) -> Option<(u64, Reason)> {
        book.take(Some(loss), Direction::Minimize)
    }

    #[test]
    fn one_checkpoint_answers_all_that_was_asked_before() {
        let book = CheckpointLog::default();
        assert_eq!((book.is_pending(), book.ask(), book.ask()), (false, 1, 2));
        assert!(book.is_pending());
        assert_eq!(take(&book, 9.0), Some((2, Reason::Asked)));
        assert_eq!((book.ask(), take(&book, 9.0)), (3, None), "a loop has one");
        book.answer(2, Reason::Asked, Ok(saved("a", 9.0, 1.0)), 1.0);
        let read = book.read();
        assert_eq!((read.requested, read.answered, read.saved), (3, 2, 1));
        assert_eq!((read.path.as_deref(), read.step, read.loss), (Some("a"), Some(7), Some(9.0)));
        assert_eq!((read.kept, take(&book, 9.0)), (None, Some((3, Reason::Asked))));
    }

    #[test]
    fn failure_is_reported_and_the_earlier_checkpoint_stays() {
        let book = CheckpointLog::default();
        book.ask();
        book.answer(1, Reason::Asked, Ok(saved("a", 9.0, 1.0)), 1.0);
        book.ask();
        book.answer(2, Reason::Asked, Err("the disk is full".to_owned()), 2.0);
        let read = book.read();
        assert_eq!((read.answered, read.saved, read.path.as_deref()), (2, 1, Some("a")));
        assert_eq!(read.error.as_deref(), Some("the disk is full"));
    }

    #[test]
    fn kept_checkpoint_is_replaced_only_by_a_better_one() {
        let book = CheckpointLog::default();
        let kept = |book: &CheckpointLog| book.read().kept.map(|kept| (kept.path, kept.loss));
        book.ask_to_keep();
        assert_eq!(take(&book, 5.0), Some((1, Reason::Keep)));
        book.answer(1, Reason::Keep, Ok(saved("best", 5.0, 100.0)), 100.0);
        book.reconsider(Some(6.0), Direction::Minimize, 200.0);
        book.reconsider(Some(4.0), Direction::Minimize, 101.0);
        assert!(!book.is_pending(), "neither something worse nor at once");
        book.reconsider(Some(4.0), Direction::Minimize, 200.0);
        assert!(book.is_pending());
        assert_eq!(take(&book, 5.5), None, "by now it is worse again");
        assert_eq!((book.read().requested, book.read().answered), (2, 2));
        book.reconsider(Some(4.0), Direction::Minimize, 201.0);
        assert_eq!(take(&book, 4.5), Some((3, Reason::Keep)));
        book.answer(3, Reason::Keep, Err("no".to_owned()), 201.0);
        assert_eq!(kept(&book), Some(("best".to_owned(), 5.0)));
        book.reconsider(Some(4.0), Direction::Minimize, 230.0);
        assert!(!book.is_pending(), "a failed save waits as long as another");
        book.ask();
        assert_eq!(take(&book, 50.0), Some((4, Reason::Asked)));
        book.answer(4, Reason::Asked, Ok(saved("latest", 50.0, 300.0)), 300.0);
        assert_eq!(kept(&book), Some(("best".to_owned(), 5.0)));
    }

    #[test]
    fn first_checkpoint_to_keep_is_tried_again_after_a_failure() {
        let book = CheckpointLog::default();
        book.reconsider(Some(5.0), Direction::Minimize, 90.0);
        assert!(!book.is_pending(), "the acceptable loss is not reached yet");
        book.ask_to_keep();
        assert_eq!(take(&book, 5.0), Some((1, Reason::Keep)));
        book.answer(1, Reason::Keep, Err("the disk is full".to_owned()), 100.0);
        book.reconsider(Some(4.0), Direction::Minimize, 129.0);
        assert!(!book.is_pending());
        book.reconsider(Some(4.0), Direction::Minimize, 130.0);
        assert_eq!(take(&book, 4.0), Some((2, Reason::Keep)));
    }

    #[test]
    fn successor_replaces_a_kept_checkpoint_by_a_better_one() {
        let book = CheckpointLog::default();
        book.resume(Kept { path: "best".to_owned(), loss: 5.0, step: 7, at: 100.0 });
        book.reconsider(Some(6.0), Direction::Minimize, 200.0);
        assert!(!book.is_pending());
        book.reconsider(Some(4.0), Direction::Minimize, 200.0);
        assert!(book.is_pending());
        assert_eq!(book.read().kept.map(|kept| kept.path).as_deref(), Some("best"));
    }
}
