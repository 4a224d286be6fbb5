//! Accepts connections, and limits their number and duration.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::write_timeout::WriteTimeout;

/// The time within which a request's head, or a TLS handshake before it, must have arrived.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A peer that reads nothing of an answer for this long is disconnected.
const WRITE_TIMEOUT: Duration = HEAD_TIMEOUT;
/// A connection ends after this time, so that none is occupied indefinitely. A listener of events
/// has to connect again.
const MAX_CONNECTION_TIME: Duration = HEAD_TIMEOUT.saturating_mul(360);
/// The most header lines of a request: more than a scraper or a browser sends.
const MAX_HEADERS: usize = 64;
/// The most bytes of a request's head: more than a scraper or a browser sends.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The wait after a failed accept, whose cause is usually a lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// The transport of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection of either kind, whose peer must read its answers in time.
pub type Connection = WriteTimeout<Box<dyn Stream>>;

/// A listener of either kind.
#[derive(Debug)]
pub enum Acceptor {
    /// On a port.
    Tcp(TcpListener),
    /// On a socket's file.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl Acceptor {
    /// Serves at most `max_connections` connections at once; any more are closed. Dropping the future
    /// ends all of them.
    pub async fn serve<T>(self, max_connections: usize, talk: impl Fn(Connection) -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            let Ok(stream) = self.accept().await else {
                sleep(ACCEPT_BACKOFF).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            if connections.len() < max_connections {
                let talk = Box::pin(talk(WriteTimeout::new(stream, WRITE_TIMEOUT)));
                connections.spawn(async { drop(timeout(MAX_CONNECTION_TIME, talk).await) });
            }
        }
    }

    async fn accept(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            #[cfg(unix)]
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// Answers the requests of one connection, one after the other, until its end.
pub async fn answer<A, B>(connection: impl Stream + 'static, to: impl Fn(Request<Incoming>) -> A)
where
    A: Future<Output = Response<B>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(|request| {
        let answer = to(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(connection), service);
    // An error only means that the peer has ended the connection badly.
    drop(connection.await);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn connection_over_the_limit_is_closed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        let talk = move |mut connection: Connection| {
            count.fetch_add(1, Ordering::Relaxed);
            async move { drop(connection.read(&mut [0]).await) }
        };
        let client = async {
            let first = TcpStream::connect(address).await.unwrap();
            let mut second = TcpStream::connect(address).await.unwrap();
            assert_eq!(second.read(&mut [0]).await.unwrap(), 0, "it is closed");
            assert_eq!(served.load(Ordering::Relaxed), 1);
            drop(first);
            while served.load(Ordering::Relaxed) < 2 {
                let mut next = TcpStream::connect(address).await.unwrap();
                drop(timeout(Duration::from_millis(20), next.read(&mut [0])).await);
            }
        };
        tokio::select! {
            () = Acceptor::Tcp(listener).serve(1, talk) => unreachable!("it never returns"),
            () = client => {}
        }
    }
}
