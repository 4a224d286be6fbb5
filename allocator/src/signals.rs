//! The ways to ask the allocator to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// What asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM, or the terminal was closed (SIGHUP).
    Terminated,
}

/// Listens for SIGINT, SIGTERM and SIGHUP for as long as this lives. Later signals change nothing: putting
/// limits back takes a bounded time and is not to be cut short.
#[derive(Debug)]
pub struct Signals {
    asked: watch::Sender<Option<Ending>>,
    _listener: AbortOnDropHandle<()>,
}

impl Signals {
    /// Starts to listen.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn listen() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let asked = watch::Sender::new(None);
        let asking = asked.clone();
        let task = tokio::spawn(async move {
            loop {
                let ending = tokio::select! {
                    _ = interrupt.recv() => Ending::Interrupted,
                    _ = terminate.recv() => Ending::Terminated,
                    _ = hangup.recv() => Ending::Terminated,
                };
                ask(&asking, ending);
            }
        });
        Ok(Self { asked, _listener: AbortOnDropHandle::new(task) })
    }

    /// Takes the end of standard input for a signal, too.
    pub fn end_with_stdin(&self) -> io::Result<()> {
        let asking = self.asked.clone();
        // A thread of its own: a read from a terminal or pipe cannot be given up.
        std::thread::Builder::new().name("paceline-stdin".to_owned()).spawn(move || {
            // An input that cannot be read has ended as well.
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
            ask(&asking, Ending::Terminated);
        })?;
        Ok(())
    }

    /// Becomes `Some` with the first signal, and stays so.
    pub fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.asked.subscribe()
    }
}

/// The first to ask is the one that is told of.
fn ask(asked: &watch::Sender<Option<Ending>>, ending: Ending) {
    asked.send_if_modified(|before| {
        let first = before.is_none();
        before.get_or_insert(ending);
        first
    });
}
