//! Losses that become known after their step has ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use crate::hot::clock::Clock;
use crate::hot::ledger::Entry;
use crate::job::Job;

/// The name of the thread that waits for them.
const NAME: &str = "paceline-losses";
/// The most losses that may wait. A device further behind would have run out of memory before.
const MAX_WAITING: usize = 256;
/// How often the end of a job looks whether losses still wait.
const LOOK: Duration = Duration::from_millis(1);

/// A loss that is computed when it is called.
pub(crate) type Loss = Box<dyn FnOnce() -> f64 + Send>;

/// The queue to the thread that waits for losses. The first loss starts that thread.
#[derive(Debug, Default)]
pub(crate) struct Later {
    queue: OnceLock<Option<SyncSender<Loss>>>,
    queued: AtomicU64,
    entered: Arc<AtomicU64>,
}

impl Job {
    /// Enters a loss once it is known.
    pub(crate) fn enter_later(job: &Arc<Self>, loss: Loss) {
        let later = job.later();
        let start = || start(Arc::downgrade(job), Arc::clone(&later.entered));
        let sender = later.queue.get_or_init(start);
        // This also fails after the thread has ended by a panic in a loss, which must not reach the loop.
        if sender.as_ref().is_none_or(|sender| sender.try_send(loss).is_err()) {
            job.ledger().drop_one();
        } else {
            later.queued.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the losses that wait are entered, for `limit` at most. The others count as dropped.
    pub(crate) fn enter_waiting(&self, limit: Duration) {
        let later = self.later();
        let waiting = || {
            let queued = later.queued.load(Ordering::Relaxed);
            queued.saturating_sub(later.entered.load(Ordering::Acquire))
        };
        let clock = self.ledger().clock();
        let end = clock.elapsed().saturating_add(limit);
        while waiting() > 0 && clock.elapsed() < end {
            thread::park_timeout(LOOK);
        }
        (0..waiting()).for_each(|_| self.ledger().drop_one());
    }
}

fn start(job: Weak<Job>, entered: Arc<AtomicU64>) -> Option<SyncSender<Loss>> {
    let (sender, losses) = sync_channel(MAX_WAITING);
    let thread = thread::Builder::new().name(NAME.to_owned());
    thread.spawn(move || enter(&job, &losses, &entered)).is_ok().then_some(sender)
}

/// The thread's main function: it ends with its job.
fn enter(job: &Weak<Job>, losses: &Receiver<Loss>, entered: &AtomicU64) {
    for loss in losses {
        let loss = loss();
        let Some(job) = job.upgrade() else { return };
        job.enter(Entry { loss: Some(loss), took: None }, Clock::now());
        entered.fetch_add(1, Ordering::Release);
    }
}
