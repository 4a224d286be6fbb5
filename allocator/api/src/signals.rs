//! Signals from a user or a service manager.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The kind of signal that asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM, the terminal was closed (SIGHUP), or another signal whose default is to end a program.
    Terminated,
}

/// The meaning of SIGHUP while the process has its terminal, never had one, or was started by `nohup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    Ends,
    Reloads,
}

/// Listens for all signals whose default is to end a program, until it is dropped. Only the first signal to
/// end counts: restoring limits takes a bounded time and must not be interrupted.
#[derive(Debug)]
pub struct Signals {
    asked: watch::Sender<Option<Ending>>,
    reloads: watch::Receiver<u64>,
    _listener: AbortOnDropHandle<()>,
}

/// Signals that would end the process with limits in force: Ctrl-\ in a terminal, a timer, a limit of CPU
/// time, or one that was sent by mistake.
fn others() -> io::Result<Vec<Listener>> {
    use rustix::process::Signal as Named;
    let named = [
        Named::QUIT,
        Named::USR1,
        Named::USR2,
        Named::ALARM,
        Named::VTALARM,
        Named::PROF,
        Named::IO,
        Named::XCPU,
    ];
    named.iter().map(|named| signal(SignalKind::from_raw(named.as_raw()))).collect()
}

/// Waits for any of these.
async fn any(signals: &mut [Listener]) {
    poll_fn(|context| {
        let came = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if came { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
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
        // `nohup` has the closing of the terminal ignored: the run is to outlive it.
        let outlives_terminal = is_ignored(SignalKind::hangup());
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut others = others()?;
        let had_terminal = has_terminal();
        let asked = watch::Sender::new(None);
        let asking = asked.clone();
        let (reload, reloads) = watch::channel(0);
        let task = tokio::spawn(async move {
            loop {
                let ending = tokio::select! {
                    _ = interrupt.recv() => Ending::Interrupted,
                    _ = terminate.recv() => Ending::Terminated,
                    () = any(&mut others) => Ending::Terminated,
                    _ = hangup.recv() => {
                        let lost_terminal =
                            had_terminal && !outlives_terminal && !has_terminal();
                        if means == Hangup::Reloads && !lost_terminal {
                            reload.send_modify(|times| *times += 1);
                            continue;
                        }
                        if outlives_terminal {
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

/// Whether a signal is ignored; to be asked before anything listens for it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> (kind.as_raw_value() - 1) & 1 == 1
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
