//! How much time is left once the job has ended.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::lock;
use crate::clock::Clock;

/// Tells the threads of targets when the process ends.
#[derive(Debug)]
pub struct Ending {
    clock: Clock,
    /// When the process ends, by the clock; `None` while the job runs.
    at: Mutex<Option<Duration>>,
    began: Condvar,
}

impl Default for Ending {
    fn default() -> Self {
        Self::new()
    }
}

impl Ending {
    /// A job that runs.
    pub fn new() -> Self {
        Self { clock: Clock::start(), at: Mutex::new(None), began: Condvar::new() }
    }

    /// The process ends after this time, or earlier if that was said before.
    pub fn begin(&self, after: Duration) {
        let mut at = lock(&self.at);
        let new = self.clock.elapsed().saturating_add(after);
        *at = Some(at.map_or(new, |known| known.min(new)));
        drop(at);
        self.began.notify_all();
    }

    /// Whether the job has ended.
    pub fn has_begun(&self) -> bool {
        lock(&self.at).is_some()
    }

    /// The time left for work that may take `limit`.
    pub fn remaining(&self, limit: Duration) -> Duration {
        let left = lock(&self.at).map(|at| at.saturating_sub(self.clock.elapsed()));
        left.map_or(limit, |left| left.min(limit))
    }

    /// Waits for this long, or until the process ends. The end of the job cuts it short once.
    pub fn pause(&self, time: Duration) {
        let at = lock(&self.at);
        if at.is_some() {
            drop(at);
            std::thread::park_timeout(self.remaining(time));
        } else {
            drop(self.began.wait_timeout_while(at, time, |at| at.is_none()));
        }
    }
}
