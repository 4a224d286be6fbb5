//! Accepts connections and keeps them few and short.

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
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::patience::Patience;

/// A request's head, and whatever comes before it, must be here within this time.
pub const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// A peer that takes nothing of an answer for this long is cut off.
const WRITE_PATIENCE: Duration = HEAD_PATIENCE;
/// A connection ends after this time, so that nobody keeps a place for ever. Who listens to events
/// connects again.
const LONGEST_CONNECTION: Duration = HEAD_PATIENCE.saturating_mul(360);
/// Header lines that are read: more than a scraper or a browser sends.
const MOST_HEADERS: usize = 64;
/// Bytes of a request's head that are read: more than a scraper or a browser sends.
const LARGEST_HEAD: usize = 16 * 1024;
/// After a failed accept, most often for want of file descriptors, the next waits this long.
const PAUSE: Duration = Duration::from_millis(100);

/// What a connection is made of.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection of either kind, whose peer must read what it is sent.
pub type Connection = Patience<Box<dyn Stream>>;

/// What takes connections.
#[derive(Debug)]
pub enum Acceptor {
    /// By a port.
    Tcp(TcpListener),
    /// By a socket's file.
    Unix(UnixListener),
}

impl Acceptor {
    /// Serves for ever, `most` connections at once; a further one is closed. All end when this is
    /// given up.
    pub async fn serve<T>(self, most: usize, talk: impl Fn(Connection) -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            let Ok(stream) = self.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            if connections.len() < most {
                let talk = Box::pin(talk(Patience::new(stream, WRITE_PATIENCE)));
                connections.spawn(async { drop(timeout(LONGEST_CONNECTION, talk).await) });
            }
        }
    }

    async fn accept(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
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
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(connection), service);
    // How a connection ends is the peer's affair.
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
    async fn one_connection_too_many_is_closed_and_a_place_becomes_free_again() {
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
            () = Acceptor::Tcp(listener).serve(1, talk) => unreachable!("it serves for ever"),
            () = client => {}
        }
    }
}
