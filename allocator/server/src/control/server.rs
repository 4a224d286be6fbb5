//! The server of the control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use paceline_api::live::Who;
use paceline_local::WriteTimeout;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;
use tracing::{debug, warn};

use super::SocketError;
use super::places::Places;
use super::requests::Requests;
use super::socket::{Place, Socket};
use crate::web::{Access, Snapshots, json, router};

/// How many clients may listen to events.
const MAX_LISTENERS: usize = 8;
/// The longest request line, head or body, in bytes.
pub(super) const MAX_LEN: u16 = 16 * 1024;
/// The time limit for reading a request, and for sending the answer to a line of JSON. An HTTP client
/// that takes nothing of its answer for this long is disconnected.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest connection. A listener of events connects again.
const MAX_CONNECTION_TIME: Duration = Duration::from_hours(1);
/// The pause after a failed accept, for example without free file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(200);

/// The socket of a run. It is removed when this is dropped.
#[derive(Debug)]
pub struct Control {
    _serving: AbortOnDropHandle<()>,
    _place: Place,
}

/// Listens at `path` and answers from the snapshots and from the audit log in `audit`.
#[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
pub fn serve(
    path: &Path,
    snapshots: impl Into<Snapshots>,
    audit: PathBuf,
) -> Result<Control, SocketError> {
    let Socket { listener, place } = Socket::bind(path)?;
    let listen = || {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    };
    let listener = listen().map_err(|error| SocketError::Io(path.to_owned(), error))?;
    let snapshots = snapshots.into();
    let owner = rustix::process::geteuid().as_raw();
    let requests = Requests { live: snapshots.cache.live.clone(), audit, owner };
    let more = requests.clone().routes();
    let router = router(snapshots, Access::default(), MAX_LISTENERS, None, more);
    let task = tokio::spawn(receive(listener, requests, router));
    Ok(Control { _serving: AbortOnDropHandle::new(task), _place: place })
}

async fn receive(listener: UnixListener, requests: Requests, router: Router) {
    let mut clients = JoinSet::new();
    let places = Places::new(requests.owner);
    loop {
        while clients.try_join_next().is_some() {}
        let accepted = listener.accept().await.and_then(|(stream, _)| Ok((peer(&stream)?, stream)));
        let (who, stream) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!("the control socket cannot accept a connection: {error}");
                sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        // Without a place, the connection is closed.
        let Some(place) = places.take(who) else { continue };
        let (requests, router) = (requests.clone(), router.clone());
        clients.spawn(async move {
            let _turn = place.turn().await;
            if let Err(error) = talk(stream, who, requests, router).await {
                debug!("a client of the control socket disconnected early: {error}");
            }
        });
    }
}

/// The process at the other end, as the kernel knows it.
fn peer(stream: &UnixStream) -> io::Result<Who> {
    let peer = stream.peer_cred()?;
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    Ok(Who { uid: peer.uid(), pid })
}

/// Answers one request: HTTP if it begins with an upper-case letter, else a line of JSON.
async fn talk(stream: UnixStream, who: Who, requests: Requests, router: Router) -> io::Result<()> {
    let deadline = Instant::now() + READ_TIMEOUT;
    let mut stream = BufReader::new(stream);
    let start = timeout_at(deadline, stream.fill_buf()).await??;
    if start.first().is_some_and(u8::is_ascii_uppercase) {
        let service = service_fn(|mut request| {
            request.extensions_mut().insert(who);
            router.clone().oneshot(request)
        });
        let answering = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(deadline - Instant::now())
            .max_buf_size(MAX_LEN.into())
            .keep_alive(false)
            // A script may close its side after its request.
            .half_close(true)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream, READ_TIMEOUT)), service);
        return timeout(MAX_CONNECTION_TIME, answering).await?.map_err(io::Error::other);
    }
    let mut line = Vec::new();
    let mut reader = (&mut stream).take(MAX_LEN.into());
    timeout_at(deadline, reader.read_until(b'\n', &mut line)).await??;
    let answer = json(&requests.answer(&line, who).await) + "\n";
    timeout(READ_TIMEOUT, stream.write_all(answer.as_bytes())).await?
}
