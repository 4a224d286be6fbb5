//! What a user or a service manager tells the allocator by a signal.

use std::fs::File;
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

/// What SIGHUP means while the terminal is still there, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    Ends,
    Reloads,
}

/// Listens for SIGINT, SIGTERM and SIGHUP for as long as this lives. Later signals to end change
/// nothing: putting limits back takes a bounded time and is not to be cut short.
#[derive(Debug)]
pub struct Signals {
    asked: watch::Sender<Option<Ending>>,
    reloads: watch::Receiver<u64>,
    _listener: AbortOnDropHandle<()>,
}

impl Signals {
    /// Starts to listen. SIGHUP asks for the end, as SIGTERM does.
    pub fn listen() -> io::Result<Self> {
        Self::listen_where(Hangup::Ends)
    }

    /// The same for a service: SIGHUP asks it to read its configuration again, unless the process
    /// has lost its terminal by it. Whoever closes the terminal of a run ends the run.
    pub fn listen_as_a_service() -> io::Result<Self> {
        Self::listen_where(Hangup::Reloads)
    }

    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    fn listen_where(means: Hangup) -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let had_terminal = has_terminal();
        let asked = watch::Sender::new(None);
        let asking = asked.clone();
        let (reload, reloads) = watch::channel(0);
        let task = tokio::spawn(async move {
            loop {
                let ending = tokio::select! {
                    _ = interrupt.recv() => Ending::Interrupted,
                    _ = terminate.recv() => Ending::Terminated,
                    _ = hangup.recv() => {
                        let lost_terminal = had_terminal && !has_terminal();
                        if means == Hangup::Reloads && !lost_terminal {
                            reload.send_modify(|times| *times += 1);
                            continue;
                        }
                        Ending::Terminated
                    }
                };
                ask(&asking, ending);
            }
        });
        Ok(Self { asked, reloads, _listener: AbortOnDropHandle::new(task) })
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

    /// Changes with each request to read the configuration again, those before this call included.
    pub fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.clone()
    }
}

/// Whether the process belongs to a terminal that is there.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// The first to ask is the one that is told of.
fn ask(asked: &watch::Sender<Option<Ending>>, ending: Ending) {
    asked.send_if_modified(|before| {
        let first = before.is_none();
        before.get_or_insert(ending);
        first
    });
}
