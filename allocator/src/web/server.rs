//! The HTTP server: accepts connections and keeps them few and short.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::listen::Acceptor;
use super::patience::Patience;
use super::routes::Routes;

/// So many connections at once; a further one is closed. A browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// A request's head, and what TLS needs before it, must be here within this time.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// A peer that takes nothing of an answer for this long is cut off.
const WRITE_PATIENCE: Duration = HEAD_PATIENCE;
/// A connection ends after this time, so that nobody keeps a place for ever. Who listens to events
/// connects again.
const LONGEST_CONNECTION: Duration = Duration::from_hours(1);
/// Header lines that are read: more than a browser sends.
const MOST_HEADERS: usize = 64;
/// Bytes of a request's head that are read: more than a browser sends.
const LARGEST_HEAD: usize = 16 * 1024;
/// After a failed accept, most often for want of file descriptors, the next waits this long.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that is bound.
#[derive(Debug)]
pub(super) struct Server {
    acceptor: Acceptor,
    connections: JoinSet<()>,
    talk: Talk,
}

/// How one talks on a connection.
#[derive(Clone, Debug)]
struct Talk {
    routes: Arc<Routes>,
    tls: Option<Arc<ServerConfig>>,
}

/// What a connection is made of.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

impl Server {
    /// Takes over a listener.
    pub(super) fn new(acceptor: Acceptor, routes: Routes, tls: Option<Arc<ServerConfig>>) -> Self {
        let talk = Talk { routes: Arc::new(routes), tls };
        Self { acceptor, connections: JoinSet::new(), talk }
    }

    /// Serves for ever.
    pub(super) async fn run(mut self) {
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
    fn admit(&mut self, stream: impl Stream) {
        while self.connections.try_join_next().is_some() {}
        if self.connections.len() >= MOST_CONNECTIONS {
            return;
        }
        let talk = self.talk.clone().with(Patience::new(stream, WRITE_PATIENCE));
        self.connections.spawn(async { drop(timeout(LONGEST_CONNECTION, Box::pin(talk)).await) });
    }
}

impl Talk {
    async fn with(self, stream: impl Stream) {
        match self.tls {
            None => answer(self.routes, stream).await,
            Some(tls) => {
                if let Ok(Ok(stream)) =
                    timeout(HEAD_PATIENCE, TlsAcceptor::from(tls).accept(stream)).await
                {
                    answer(self.routes, stream).await;
                }
            }
        }
    }
}

async fn answer(routes: Arc<Routes>, stream: impl Stream) {
    let service = service_fn(move |request| {
        let answer = routes.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    // How a connection ends is the peer's affair.
    drop(connection.await);
}
