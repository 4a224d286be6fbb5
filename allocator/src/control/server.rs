//! Answering at the socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::socket::{Place, Socket};
use super::{Reply, Request, SocketError, Tail};
use crate::audit::read;
use crate::live::{Command, Live, Who};

/// So many are served at once; more wait for their turn.
const GUESTS: usize = 16;
/// No request is longer.
const LONGEST: u64 = 16 * 1024;
/// A request must be here, and its answer taken, within this time each.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the driver may take for an order: it may be writing other limits.
const ORDER_PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait where no connection can be taken, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// The socket of a run, for as long as this lives.
#[derive(Debug)]
pub struct Control {
    _serving: AbortOnDropHandle<()>,
    _place: Place,
}

/// What answers are made of.
#[derive(Clone, Debug)]
struct Desk {
    live: Live,
    /// The folder of the audit log.
    audit: PathBuf,
    /// Who runs the allocator.
    owner: u32,
}

/// Listens at `path` and answers from `live` and from the audit log in `audit`.
#[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
pub fn serve(path: &Path, live: Live, audit: PathBuf) -> Result<Control, SocketError> {
    let Socket { listener, place } = Socket::bind(path)?;
    let listen = || {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    };
    let listener = listen().map_err(|error| SocketError::Io(path.to_owned(), error))?;
    let owner = rustix::process::geteuid().as_raw();
    let task = tokio::spawn(receive(listener, Desk { live, audit, owner }));
    Ok(Control { _serving: AbortOnDropHandle::new(task), _place: place })
}

async fn receive(listener: UnixListener, desk: Desk) {
    let mut guests = JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        if guests.len() >= GUESTS {
            guests.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let desk = desk.clone();
                guests.spawn(async move {
                    if let Err(error) = desk.attend(stream).await {
                        debug!("somebody at the control socket left early: {error}");
                    }
                });
            }
            Err(error) => {
                warn!("the control socket takes no connection: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Desk {
    async fn attend(&self, stream: UnixStream) -> std::io::Result<()> {
        let peer = stream.peer_cred()?;
        let (reader, mut writer) = stream.into_split();
        let mut line = Vec::new();
        let mut reader = BufReader::new(reader.take(LONGEST));
        tokio::time::timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await??;
        let reply = if line.ends_with(b"\n") {
            match serde_json::from_slice(&line) {
                Ok(request) => self.reply(request, peer).await,
                Err(error) => Reply::Failed(format!("the request is not one: {error}")),
            }
        } else {
            Reply::Failed(format!("a request is a line of at most {LONGEST} bytes"))
        };
        let mut answer = serde_json::to_vec(&reply)?;
        answer.push(b'\n');
        tokio::time::timeout(PATIENCE, writer.write_all(&answer)).await??;
        Ok(())
    }

    async fn reply(&self, request: Request, peer: UCred) -> Reply {
        match request {
            Request::Status => Reply::Status(Box::new((*self.live.now()).clone())),
            Request::Audit(tail) => self.audit(tail).await,
            Request::Order(command) => self.order(command, peer).await,
        }
    }

    async fn order(&self, command: Command, peer: UCred) -> Reply {
        if ![0, self.owner].contains(&peer.uid()) {
            return Reply::Denied(format!(
                "only root and user {} may order anything here, not user {}",
                self.owner,
                peer.uid()
            ));
        }
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        let who = Who { uid: peer.uid(), pid };
        match tokio::time::timeout(ORDER_PATIENCE, self.live.order(command, who)).await {
            Ok(Ok(sentence)) => Reply::Done(sentence),
            Ok(Err(refusal)) => Reply::Refused(refusal),
            Err(_) => {
                Reply::Failed("the allocator is busy; it may still do what it was told".to_owned())
            }
        }
    }

    /// The log can be long, and the disk slow: it is read beside the run, not in it.
    async fn audit(&self, Tail { last, job }: Tail) -> Reply {
        let folder = self.audit.clone();
        let reading = tokio::task::spawn_blocking(move || match job {
            Some(job) => read::story(&folder, &job, last.into()),
            None => read::last(&folder, last.into()),
        });
        match reading.await {
            Ok(Ok(records)) => Reply::Audit(records),
            Ok(Err(error)) => Reply::Failed(format!("the audit log cannot be read: {error}")),
            Err(error) => Reply::Failed(format!("the audit log was not read: {error}")),
        }
    }
}
