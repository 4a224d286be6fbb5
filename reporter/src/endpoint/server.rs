//! The HTTP server: accepts connections and keeps them few and short.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::endpoint::listen::{Listener, SocketFile};
use crate::endpoint::observer::Observer;
use crate::endpoint::patience::Patience;
use crate::endpoint::routes::Routes;

/// So many connections at once; a further one is closed. A few scrapers need a few.
const MOST_CONNECTIONS: usize = 32;
/// A request's head must be here within this time.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// A peer that takes nothing of an answer for this long is cut off.
const WRITE_PATIENCE: Duration = HEAD_PATIENCE;
/// A connection ends after this time, so that nobody keeps a place for ever. Who listens to events
/// connects again.
const LONGEST_CONNECTION: Duration = HEAD_PATIENCE.saturating_mul(360);
/// Header lines that are read: more than a scraper sends.
const MOST_HEADERS: usize = 64;
/// Bytes of a request's head that are read: more than a scraper sends.
const LARGEST_HEAD: usize = 16 * 1024;
/// After a failed accept, most often for want of file descriptors, the next waits this long.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that is bound.
#[derive(Debug)]
pub(crate) struct Server {
    acceptor: Acceptor,
    connections: JoinSet<()>,
    routes: Arc<Routes>,
}

#[derive(Debug)]
enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// Takes over a listener, within a runtime; its socket's file is the caller's to keep.
    pub(crate) fn new(
        listener: Listener,
        observer: Arc<Observer>,
    ) -> io::Result<(Self, Option<SocketFile>)> {
        let (acceptor, checks_host, file) = match listener {
            Listener::Tcp(listener) => {
                let checks_host = is_loopback(listener.local_addr()?);
                (Acceptor::Tcp(TcpListener::from_std(listener)?), checks_host, None)
            }
            Listener::Unix(listener, file) => {
                (Acceptor::Unix(UnixListener::from_std(listener)?), false, Some(file))
            }
        };
        let routes = Arc::new(Routes::new(observer, checks_host));
        Ok((Self { acceptor, connections: JoinSet::new(), routes }, file))
    }

    /// Serves for ever.
    pub(crate) async fn run(mut self) {
        loop {
            let accepted = match &self.acceptor {
                Acceptor::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| self.admit(stream))
                }
                Acceptor::Unix(listener) => {
                    listener.accept().await.map(|(stream, _)| self.admit(stream))
                }
            };
            if accepted.is_err() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Serves a connection, unless there are too many.
    fn admit(&mut self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        while self.connections.try_join_next().is_some() {}
        if self.connections.len() >= MOST_CONNECTIONS {
            return;
        }
        let routes = Arc::clone(&self.routes);
        let service = service_fn(move |request| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, Infallible>(routes.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_buf_size(LARGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(Patience::new(stream, WRITE_PATIENCE)), service);
        // How a connection ends is the peer's affair.
        self.connections.spawn(async { drop(timeout(LONGEST_CONNECTION, connection).await) });
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
