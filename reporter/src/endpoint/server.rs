//! The HTTP server of one job.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use paceline_local::{Acceptor, SocketFile, answer};
use tokio::net::{TcpListener, UnixListener};

use crate::endpoint::listen::Listener;
use crate::endpoint::observer::Observer;
use crate::endpoint::routes::Routes;

/// So many connections at once. A few scrapers need a few.
const MOST_CONNECTIONS: usize = 32;

/// A server that is bound.
#[derive(Debug)]
pub(crate) struct Server {
    acceptor: Acceptor,
    routes: Arc<Routes>,
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
        Ok((Self { acceptor, routes }, file))
    }

    /// Serves for ever.
    pub(crate) async fn run(self) {
        let Self { acceptor, routes } = self;
        let talk = |connection| {
            let routes = Arc::clone(&routes);
            answer(connection, move |request| {
                let routes = Arc::clone(&routes);
                async move { routes.answer(request).await }
            })
        };
        acceptor.serve(MOST_CONNECTIONS, talk).await;
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
