//! The HTTP server of one job.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use paceline_local::{Acceptor, SocketFile, answer};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;

use crate::endpoint::listen::Listener;
use crate::endpoint::observer::Observer;
use crate::endpoint::routes::Routes;

/// The most connections at once. A few scrapers need a few.
const MAX_CONNECTIONS: usize = 32;

/// A bound server.
#[derive(Debug)]
pub(crate) struct Server {
    acceptor: Acceptor,
    routes: Arc<Routes>,
}

impl Server {
    /// Takes over a listener, within a runtime. The caller must keep the socket's file.
    pub(crate) fn new(
        listener: Listener,
        observer: Arc<Observer>,
    ) -> io::Result<(Self, Option<SocketFile>)> {
        let (acceptor, checks_host, file) = match listener {
            Listener::Tcp(listener) => {
                let checks_host = is_loopback(listener.local_addr()?);
                (Acceptor::Tcp(TcpListener::from_std(listener)?), checks_host, None)
            }
            #[cfg(unix)]
            Listener::Unix(listener, file) => {
                (Acceptor::Unix(UnixListener::from_std(listener)?), false, Some(file))
            }
        };
        let routes = Arc::new(Routes::new(observer, checks_host));
        Ok((Self { acceptor, routes }, file))
    }

    /// Serves until it is dropped.
    pub(crate) async fn run(self) {
        let Self { acceptor, routes } = self;
        let talk = |connection| {
            let routes = Arc::clone(&routes);
            answer(connection, move |request| {
                let routes = Arc::clone(&routes);
                async move { routes.answer(request).await }
            })
        };
        acceptor.serve(MAX_CONNECTIONS, talk).await;
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
