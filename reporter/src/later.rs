//! Losses that become known after their step has ended.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use crate::hot::clock::Clock;
use crate::hot::ledger::Entry;
use crate::job::Job;

/// The name of the thread that waits for them.
const NAME: &str = "paceline-losses";
/// The most losses that may wait. A device further behind would have run out of memory before.
const MAX_WAITING: usize = 256;

/// A loss that is computed when it is called.
pub(crate) type Loss = Box<dyn FnOnce() -> f64 + Send>;

/// The queue to the thread that waits for losses. The first loss starts that thread.
#[derive(Debug, Default)]
pub(crate) struct Later(OnceLock<Option<SyncSender<Loss>>>);

impl Job {
    /// Enters a loss once it is known.
    pub(crate) fn enter_later(job: &Arc<Self>, loss: Loss) {
        let sender = job.later().0.get_or_init(|| start(Arc::downgrade(job)));
        // This also fails after the thread has ended by a panic in a loss, which must not reach the loop.
        if sender.as_ref().is_none_or(|sender| sender.try_send(loss).is_err()) {
            job.ledger().drop_one();
        }
    }
}

fn start(job: Weak<Job>) -> Option<SyncSender<Loss>> {
    let (sender, losses) = sync_channel(MAX_WAITING);
    let thread = thread::Builder::new().name(NAME.to_owned());
    thread.spawn(move || enter(&job, &losses)).is_ok().then_some(sender)
}

/// The thread's main function: it ends with its job.
fn enter(job: &Weak<Job>, losses: &Receiver<Loss>) {
    for loss in losses {
        let loss = loss();
        let Some(job) = job.upgrade() else { return };
        job.enter(Entry { loss: Some(loss), took: None }, Clock::now());
    }
}
