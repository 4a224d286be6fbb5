//! Losses that are not known yet when their step ends.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use crate::hot::clock::Clock;
use crate::hot::ledger::Entry;
use crate::job::Job;

/// The thread's name, as far as the system has room for it.
const NAME: &str = "paceline-losses";
/// So many losses may wait. A device that is further behind than this keeps the loop waiting for
/// memory long before.
const MOST: usize = 256;

/// A loss that is worked out when it is called.
pub(crate) type Loss = Box<dyn FnOnce() -> f64 + Send>;

/// The way to the thread that waits for losses; it starts with the first of them.
#[derive(Debug, Default)]
pub(crate) struct Later(OnceLock<Option<SyncSender<Loss>>>);

impl Job {
    /// Enters a loss once it is known.
    pub(crate) fn enter_later(job: &Arc<Self>, loss: Loss) {
        let way = job.later().0.get_or_init(|| start(Arc::downgrade(job)));
        // Also refused once the thread has gone by a panic of a loss, which no step is to feel.
        if way.as_ref().is_none_or(|way| way.try_send(loss).is_err()) {
            job.ledger().drop_one();
        }
    }
}

fn start(job: Weak<Job>) -> Option<SyncSender<Loss>> {
    let (way, losses) = sync_channel(MOST);
    let thread = thread::Builder::new().name(NAME.to_owned());
    thread.spawn(move || enter(&job, &losses)).is_ok().then_some(way)
}

/// The thread's life: it ends with its job.
fn enter(job: &Weak<Job>, losses: &Receiver<Loss>) {
    for loss in losses {
        let loss = loss();
        let Some(job) = job.upgrade() else { return };
        job.enter(Entry { loss: Some(loss), took: None }, Clock::now());
    }
}
