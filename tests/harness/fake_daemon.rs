use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_api::audit::{Audit, Entry};
use paceline_api::live::snapshot::{JobView, Standing};
use paceline_api::live::{self, Command, DaemonChannels, Order, Refusal, Snapshot};
use paceline_server::control::{self, Control};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// The orders so far, and the users who gave them.
type Orders = Arc<Mutex<Vec<(Command, u32)>>>;

/// An allocator's control socket without an allocator: it has a snapshot and an audit log, and
/// records every order.
#[derive(Debug)]
pub struct FakeDaemon {
    folder: TempDir,
    orders: Orders,
    _control: Control,
    _answering: JoinSet<()>,
}

/// A snapshot of two jobs; the name of one is an attack on the terminal.
pub fn example() -> Snapshot {
    let job = |job: &str, standing| JobView {
        job: job.to_owned(),
        container: job.to_owned(),
        standing,
        loss: Some(0.31),
        limit: Some(0.5),
        cpu: Some(0.25),
        ..JobView::default()
    };
    let jobs = vec![job("vae", Standing::Managed), job(HOSTILE, Standing::Waiting)];
    Snapshot { version: "0.0.1".to_owned(), pid: 7, jobs, ..Snapshot::default() }
}

/// Escape sequences for a title, colours and a cleared screen, a second line, and right-to-left text.
const HOSTILE: &str = "x\x1b]0;owned\x07\x1b[31m\x1b[2J\r\n\u{9b}31m\u{202e}y";

impl FakeDaemon {
    /// Starts it, with a log of one decision about each job.
    pub fn open(snapshot: Snapshot) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut log = Audit::open(folder.path())?;
        for (number, job) in (1..).zip(&snapshot.jobs) {
            log.write(&Entry::Decided {
                number,
                job: job.job.clone(),
                class: "CL".to_owned(),
                score: None,
                chosen: 0.5,
                moves_to: None,
                ends_in: None,
                fair_ends_in: None,
                why: "converged".to_owned(),
            });
        }
        let (live, channels) = live::pair(snapshot);
        let control =
            control::serve(&folder.path().join("control.sock"), live, folder.path().into())?;
        let orders = Orders::default();
        let mut answering = JoinSet::new();
        answering.spawn(answer(channels, Arc::clone(&orders), log));
        Ok(Self { folder, orders, _control: control, _answering: answering })
    }

    /// Its control socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// The folder of its audit log.
    pub fn state(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The orders so far, and the users who gave them.
    pub fn ordered(&self) -> Vec<(Command, u32)> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(mut channels: DaemonChannels, orders: Orders, mut log: Audit) {
    while let Some(Order { command, who, answer }) = channels.orders.recv().await {
        let result = match command.name() {
            Some("missing") => Err(Refusal::Unknown("missing".to_owned())),
            Some("never") => Err(Refusal::Impossible("never is never to be\x1b[31m".to_owned())),
            _ => Ok(format!("done: {command}")),
        };
        let outcome = result.as_ref().map_or_else(ToString::to_string, Clone::clone);
        let done = result.is_ok();
        log.write(&Entry::Ordered { who, command: command.clone(), outcome, done });
        orders.lock().unwrap_or_else(PoisonError::into_inner).push((command, who.uid));
        // The client may have gone: the order counts all the same.
        drop(answer.send(result));
    }
}
