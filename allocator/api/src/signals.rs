//! Signals from a user or a service manager.

use std::fs::File;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The kind of signal that asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM, or the terminal was closed (SIGHUP).
    Terminated,
}

/// The meaning of SIGHUP while the process has its terminal, or never had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    Ends,
    Reloads,
}

/// Listens for SIGINT, SIGTERM and SIGHUP until it is dropped. Only the first signal to end counts:
/// restoring limits takes a bounded time and must not be interrupted.
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

    /// The same for a service: SIGHUP asks it to read its configuration again. If the signal comes
    /// because the terminal was closed, it asks for the end instead.
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

    /// Treats the end of standard input like SIGTERM, too.
    pub fn end_with_stdin(&self) -> io::Result<()> {
        let asking = self.asked.clone();
        // A thread of its own: a read from a terminal or pipe cannot be cancelled.
        std::thread::Builder::new().name("paceline-stdin".to_owned()).spawn(move || {
            // An input that cannot be read has ended as well.
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
            ask(&asking, Ending::Terminated);
        })?;
        Ok(())
    }

    /// Becomes `Some` with the first signal to end, and does not change afterwards.
    pub fn ending(&self) -> watch::Receiver<Option<Ending>> {
        self.asked.subscribe()
    }

    /// Waits for the first signal to end.
    pub async fn ended(&self) -> Ending {
        let mut asked = self.ending();
        let first = asked.wait_for(Option::is_some).await;
        // The sender lives as long as this does.
        first.ok().and_then(|ending| *ending).unwrap_or(Ending::Terminated)
    }

    /// Changes with each request to read the configuration again, those before this call included.
    pub fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.clone()
    }
}

/// Whether the process has a controlling terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Records the first request to end; later ones are ignored.
fn ask(asked: &watch::Sender<Option<Ending>>, ending: Ending) {
    asked.send_if_modified(|before| {
        let first = before.is_none();
        before.get_or_insert(ending);
        first
    });
}
