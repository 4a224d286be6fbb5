//! Bringing the log to the disk, aside from whoever writes it: a slow disk delays nobody.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tracing::warn;

/// What is written within this time goes to the disk together.
const PAUSE: Duration = Duration::from_secs(1);

/// A thread that syncs what it is told of, until this is dropped.
#[derive(Debug)]
pub(super) struct Syncer {
    /// Whether something was written that the thread has not begun to sync.
    due: Arc<AtomicBool>,
    files: SyncSender<File>,
    _alive: SyncSender<()>,
}

impl Syncer {
    pub(super) fn start() -> io::Result<Self> {
        let due = Arc::new(AtomicBool::new(false));
        let (files, written) = sync_channel(1);
        let (alive, ended) = sync_channel(0);
        let begun = Arc::clone(&due);
        std::thread::Builder::new()
            .name("paceline-audit".to_owned())
            .spawn(move || sync(&begun, &written, &ended))?;
        Ok(Self { due, files, _alive: alive })
    }

    /// The file has lines that are to reach the disk soon.
    pub(super) fn written(&self, file: &File) {
        if self.due.swap(true, Ordering::AcqRel) {
            return;
        }
        // What cannot be handed over now is with the next line.
        let handed = file.try_clone().is_ok_and(|file| self.files.try_send(file).is_ok());
        if !handed {
            self.due.store(false, Ordering::Release);
        }
    }
}

fn sync(begun: &AtomicBool, written: &Receiver<File>, ended: &Receiver<()>) {
    let mut failed = false;
    while let Ok(file) = written.recv() {
        begun.store(false, Ordering::Release);
        if let Err(error) = file.sync_data()
            && !std::mem::replace(&mut failed, true)
        {
            warn!("the audit log may not reach the disk: {error}");
        }
        if ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
}
