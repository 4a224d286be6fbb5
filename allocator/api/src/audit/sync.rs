//! Syncs the log to the disk in a thread of its own, so that a slow disk does not delay a writer.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tracing::warn;

/// Lines that are written within this time are synced together.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// A thread that syncs the files handed to it, until this is dropped.
#[derive(Debug)]
pub(super) struct Syncer {
    /// Whether lines were written that the thread has not begun to sync.
    due: Arc<AtomicBool>,
    /// The number of the last entry that is known to be on the disk.
    synced: Arc<AtomicU64>,
    written: SyncSender<Written>,
    _alive: SyncSender<()>,
}

/// Files with new lines.
#[derive(Debug)]
struct Written {
    log: File,
    head: File,
    /// The number of the last entry in the log.
    last: u64,
}

impl Syncer {
    pub(super) fn start() -> io::Result<Self> {
        let due = Arc::new(AtomicBool::new(false));
        let synced = Arc::new(AtomicU64::new(0));
        let (sender, written) = sync_channel(1);
        let (alive, ended) = sync_channel(0);
        let (begun, on_disk) = (Arc::clone(&due), Arc::clone(&synced));
        std::thread::Builder::new()
            .name("paceline-audit".to_owned())
            .spawn(move || sync(&begun, &on_disk, &written, &ended))?;
        Ok(Self { due, synced, written: sender, _alive: alive })
    }

    /// Requests that the new lines of the log reach the disk soon, and after them its head.
    pub(super) fn written(&self, log: &File, head: &File, last: u64) {
        if self.due.swap(true, Ordering::AcqRel) {
            return;
        }
        // If the files cannot be handed over now, the next line does it.
        let files = log.try_clone().and_then(|log| Ok((log, head.try_clone()?)));
        let handed = files
            .is_ok_and(|(log, head)| self.written.try_send(Written { log, head, last }).is_ok());
        if !handed {
            self.due.store(false, Ordering::Release);
        }
    }

    /// The number of the last entry that is known to be on the disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }
}

fn sync(begun: &AtomicBool, synced: &AtomicU64, written: &Receiver<Written>, ended: &Receiver<()>) {
    let mut failed = false;
    while let Ok(Written { log, head, last }) = written.recv() {
        begun.store(false, Ordering::Release);
        match log.sync_data() {
            Ok(()) => drop(synced.fetch_max(last, Ordering::AcqRel)),
            Err(error) if !std::mem::replace(&mut failed, true) => {
                warn!("audit log: cannot sync it to the disk: {error}");
            }
            Err(_) => {}
        }
        // A head that is not on the disk requires fewer entries there, which is not an error.
        drop(head.sync_data());
        if ended.recv_timeout(SYNC_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
}
