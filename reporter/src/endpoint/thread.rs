//! The thread that serves the endpoint.
//!
//! A failure on it does not affect the job: a panic ends the endpoint only.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline_local::SocketFile;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::address::LocalAddr;
use crate::bell;
use crate::endpoint::listen::Listener;
use crate::endpoint::observer::Observer;
use crate::endpoint::server::Server;
use crate::job::Job;
use crate::start_error::StartError;

/// The thread's name, which the system cuts to 15 bytes.
const NAME: &str = "paceline-reporter";
/// The size of its stack, in bytes. The variable `RUST_MIN_STACK` is for the job's own threads.
const STACK: usize = 2 << 20;

/// The turns that connections get to send what they have at the end.
const LAST_TURNS: u32 = 8;

/// The thread that serves an endpoint; dropping it ends the endpoint.
#[derive(Debug)]
pub(crate) struct ServerThread {
    address: LocalAddr,
    /// The process that started the thread: a fork has a copy of this value but no thread.
    pid: u32,
    stop: Option<oneshot::Sender<()>>,
    /// Disconnected when the thread ends. Only [`Drop`] uses it, so the lock is never contended.
    ended: Mutex<Receiver<io::Result<()>>>,
    handle: Option<JoinHandle<()>>,
    job: Arc<Job>,
    /// How long [`Drop`] waits. After that the thread ends by itself.
    end_timeout: Duration,
}

impl ServerThread {
    /// Starts the thread and waits until it serves or has failed. It reads the job when the bell
    /// rings.
    pub(crate) fn start(
        (listener, address): (Listener, LocalAddr),
        bell: bell::End,
        job: Arc<Job>,
    ) -> Result<Self, StartError> {
        let end_timeout = job.settings().end_timeout;
        let served = Arc::clone(&job);
        let (stop, stopped) = oneshot::channel();
        let (started, ended) = sync_channel(1);
        let handle = thread::Builder::new()
            .name(NAME.to_owned())
            .stack_size(STACK)
            .spawn(move || run(listener, bell, served, stopped, &started))
            .map_err(StartError::Thread)?;
        let lost = |_| Err(io::Error::other("it ended at once"));
        ended.recv().unwrap_or_else(lost).map_err(StartError::Thread)?;
        let pid = std::process::id();
        let ended = Mutex::new(ended);
        let (stop, handle) = (Some(stop), Some(handle));
        Ok(Self { address, pid, stop, ended, handle, job, end_timeout })
    }

    /// Where the endpoint is.
    pub(crate) fn address(&self) -> &LocalAddr {
        &self.address
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            // Sending the stop would wake the parent's thread, and there is none here to wait for.
            std::mem::forget(self.stop.take());
            return;
        }
        // The last progress has the losses that a device still computes; the other half is for its readers.
        self.job.enter_waiting(self.end_timeout / 2);
        drop(self.stop.take());
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_over =
            matches!(ended.recv_timeout(self.end_timeout), Err(RecvTimeoutError::Disconnected));
        if let Some(handle) = self.handle.take().filter(|_| is_over) {
            // A panic of the thread has already been printed and does not concern the job.
            drop(handle.join());
        }
    }
}

/// What the thread owns while it serves.
struct Serving {
    runtime: Runtime,
    observer: Arc<Observer>,
    file: Option<SocketFile>,
}

/// The thread's main function: serves until `stopped`.
fn run(
    listener: Listener,
    bell: bell::End,
    job: Arc<Job>,
    stopped: oneshot::Receiver<()>,
    started: &SyncSender<io::Result<()>>,
) {
    let Serving { runtime, observer, file } = match serve(listener, bell, job) {
        Ok(serving) => serving,
        Err(error) => return drop(started.send(Err(error))),
    };
    if started.send(Ok(())).is_ok() {
        // Nothing is ever sent: dropping the sender is the signal.
        drop(runtime.block_on(stopped));
    }
    observer.close();
    // The connections pass the last event on to the system, which keeps it for listeners. None is waited
    // for.
    runtime.block_on(async {
        for _ in 0..LAST_TURNS {
            tokio::task::yield_now().await;
        }
    });
    // The file is removed before the socket closes, so that it cannot be a successor's.
    drop(file);
}

fn serve(listener: Listener, bell: bell::End, job: Arc<Job>) -> io::Result<Serving> {
    // Made on this thread: the caller may be within a runtime that forbids dropping another.
    let runtime = paceline_local::runtime()?;
    let context = runtime.enter();
    let bell = bell::AsyncEnd::from_std(bell)?;
    #[cfg(feature = "sigterm")]
    crate::sigterm::watch(&job)?;
    let observer = Arc::new(Observer::new(job));
    let (server, file) = Server::new(listener, Arc::clone(&observer))?;
    drop(context);
    runtime.spawn(server.run());
    let spawned = Arc::clone(&observer);
    runtime.spawn(async move { spawned.run(bell).await });
    Ok(Serving { runtime, observer, file })
}
