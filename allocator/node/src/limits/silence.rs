//! An engine that does not answer. Each further request would take as long as the last one, so restores go on
//! without it for a while: by files where nothing of ours is in the engine. Restores that have taken long
//! go on in the same way, since the process may be killed soon.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Actuator;

/// A request that fails after so long was left unanswered. No request is given up sooner.
pub(crate) const HANG: Duration = Duration::from_secs(8);
/// How long the engine may take to say that it works. One container may hang alone.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an engine that does not answer is left alone.
const PAUSE: Duration = Duration::from_secs(15);
/// Longer than the rest of a run that is ending.
const TO_THE_END: Duration = Duration::from_hours(1);

/// How long restores of many containers may ask the engine for each. Service managers kill a process 90 s
/// after they asked it to end.
pub const RESTORE_ALL_TIMEOUT: Duration = Duration::from_secs(50);

/// How many containers' limits are restored at once at the end.
pub const RESTORE_CONCURRENCY: usize = 4;

/// Until when the engine is not asked to restore anything.
#[derive(Debug, Default)]
pub(super) struct Silence {
    until: Mutex<Option<Instant>>,
    /// Whether files come first.
    hurried: AtomicBool,
}

impl Silence {
    pub(super) fn lasts(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }
}

impl Actuator {
    /// Takes in whether a request that began at `began` was answered.
    pub(super) async fn heard(&self, answered: bool, began: Instant) {
        if answered {
            self.silence.set(None);
        } else if began.elapsed() >= HANG {
            let works = tokio::time::timeout(PROBE_TIMEOUT, self.runtime.describe()).await;
            let until = matches!(works, Err(_) | Ok(Err(_))).then(|| Instant::now() + PAUSE);
            self.silence.set(until);
        }
    }

    /// From now on limits are restored without the engine where nothing of ours is in it. The others still
    /// need it.
    pub fn hurry(&self) {
        self.silence.hurried.store(true, Ordering::Relaxed);
    }

    /// From now on limits are restored without the engine: this run ends, and has waited for it long enough.
    pub(crate) fn ask_no_more(&self) {
        self.silence.set(Some(Instant::now() + TO_THE_END));
    }
}
