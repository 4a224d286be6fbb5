use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_allocator::audit::{Audit, Entry};
use paceline_allocator::control::{self, Control};
use paceline_allocator::live::snapshot::{JobView, Standing};
use paceline_allocator::live::{self, Backstage, Command, Order, Refusal, Snapshot};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// What was ordered, and by which user.
type Orders = Arc<Mutex<Vec<(Command, u32)>>>;

/// The side of an allocator that faces people, with nothing behind it: a snapshot, an audit log,
/// and somebody who writes down every order.
#[derive(Debug)]
pub struct Office {
    folder: TempDir,
    orders: Orders,
    _control: Control,
    _clerk: JoinSet<()>,
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

/// Titles, colours, a cleared screen, a second line, and text that runs backwards.
const HOSTILE: &str = "x\x1b]0;owned\x07\x1b[31m\x1b[2J\r\n\u{9b}31m\u{202e}y";

impl Office {
    /// Opens, with a log that tells of one decision about each job.
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
        let (live, backstage) = live::pair(snapshot);
        let control =
            control::serve(&folder.path().join("control.sock"), live, folder.path().into())?;
        let orders = Orders::default();
        let mut clerk = JoinSet::new();
        clerk.spawn(answer(backstage, Arc::clone(&orders), log));
        Ok(Self { folder, orders, _control: control, _clerk: clerk })
    }

    /// Its control socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// The folder of its audit log.
    pub fn state(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// What was ordered so far, and by whom.
    pub fn ordered(&self) -> Vec<(Command, u32)> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(mut backstage: Backstage, orders: Orders, mut log: Audit) {
    while let Some(Order { command, who, answer }) = backstage.orders.recv().await {
        let came = match command.name() {
            Some("nobody") => Err(Refusal::Unknown("nobody".to_owned())),
            Some("never") => Err(Refusal::Impossible("never is never to be\x1b[31m".to_owned())),
            _ => Ok(format!("done: {command}")),
        };
        let outcome = came.as_ref().map_or_else(ToString::to_string, Clone::clone);
        let done = came.is_ok();
        log.write(&Entry::Ordered { who, command: command.clone(), outcome, done });
        orders.lock().unwrap_or_else(PoisonError::into_inner).push((command, who.uid));
        // Who asked may be gone: the order stands all the same.
        drop(answer.send(came));
    }
}
