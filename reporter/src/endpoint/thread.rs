//! The thread that serves, apart from the job's own.
//!
//! Whatever goes wrong on it stays on it: a panic ends the endpoint and not the job.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline_local::SocketFile;
use tokio::sync::oneshot;
use tokio::{net, runtime};

use crate::endpoint::address::LocalAddr;
use crate::endpoint::listen::Listener;
use crate::endpoint::observer::Observer;
use crate::endpoint::server::Server;
use crate::job::Job;
use crate::start_error::StartError;

/// The thread's name, as far as the system has room for it.
const NAME: &str = "paceline-reporter";
/// A job's exit waits so long for the thread to end, which takes well under a millisecond unless
/// the CPU is short; then the thread ends by itself.
const PATIENCE: Duration = Duration::from_millis(200);

/// The thread that serves an endpoint; dropping it ends the endpoint.
#[derive(Debug)]
pub(crate) struct ServerThread {
    address: LocalAddr,
    /// The process that has the thread: a fork has a copy of this and no thread.
    pid: u32,
    stop: Option<oneshot::Sender<()>>,
    /// Is cut off by the thread's end. Only [`Drop`] looks at it, so the lock is never waited for.
    ended: Mutex<Receiver<io::Result<()>>>,
    handle: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Starts the thread and waits until it serves or has failed to. It looks at the job when the
    /// bell rings.
    pub(crate) fn start(
        (listener, address): (Listener, LocalAddr),
        bell: UnixStream,
        job: Arc<Job>,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = oneshot::channel();
        let (started, ended) = sync_channel(1);
        let handle = thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || run(listener, bell, job, stopped, &started))
            .map_err(StartError::Thread)?;
        let lost = |_| Err(io::Error::other("it ended at once"));
        ended.recv().unwrap_or_else(lost).map_err(StartError::Thread)?;
        let pid = std::process::id();
        let ended = Mutex::new(ended);
        Ok(Self { address, pid, stop: Some(stop), ended, handle: Some(handle) })
    }

    /// Where the endpoint is.
    pub(crate) fn address(&self) -> &LocalAddr {
        &self.address
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            // Telling the thread would wake the parent's, and waiting for it would be in vain.
            std::mem::forget(self.stop.take());
            return;
        }
        drop(self.stop.take());
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_over = matches!(ended.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        if let Some(handle) = self.handle.take().filter(|_| is_over) {
            // A panic over there was printed over there, and is nothing to the job.
            drop(handle.join());
        }
    }
}

/// What the thread has once it serves.
struct Serving {
    runtime: runtime::Runtime,
    observer: Arc<Observer>,
    file: Option<SocketFile>,
}

/// The thread's life: serves until `stopped`.
fn run(
    listener: Listener,
    bell: UnixStream,
    job: Arc<Job>,
    stopped: oneshot::Receiver<()>,
    started: &SyncSender<io::Result<()>>,
) {
    let Serving { runtime, observer, file } = match serve(listener, bell, job) {
        Ok(serving) => serving,
        Err(error) => return drop(started.send(Err(error))),
    };
    if started.send(Ok(())).is_ok() {
        // Nothing is ever sent: the sender's end is the sign.
        drop(runtime.block_on(stopped));
    }
    observer.close();
    // The file goes before the socket closes: a successor cannot have put its own in its place yet.
    drop(file);
}

fn serve(listener: Listener, bell: UnixStream, job: Arc<Job>) -> io::Result<Serving> {
    // Made here and not by the caller, who may be within a runtime that forbids dropping another.
    let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let context = runtime.enter();
    let bell = net::UnixStream::from_std(bell)?;
    #[cfg(feature = "sigterm")]
    crate::sigterm::watch(&job)?;
    let observer = Arc::new(Observer::new(job));
    let (server, file) = Server::new(listener, Arc::clone(&observer))?;
    drop(context);
    runtime.spawn(server.run());
    let eyes = Arc::clone(&observer);
    runtime.spawn(async move { eyes.run(bell).await });
    Ok(Serving { runtime, observer, file })
}
