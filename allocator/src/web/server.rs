//! The HTTP server of the page, behind TLS where that was asked for.

use std::sync::Arc;

use paceline_local::{Acceptor, Connection, HEAD_PATIENCE, Stream, answer};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::routes::Routes;

/// So many connections at once. A browser opens six.
const MOST_CONNECTIONS: usize = 64;

/// A server that is bound.
#[derive(Debug)]
pub(super) struct Server {
    acceptor: Acceptor,
    talk: Talk,
}

/// How one talks on a connection.
#[derive(Clone, Debug)]
struct Talk {
    routes: Arc<Routes>,
    tls: Option<Arc<ServerConfig>>,
}

impl Server {
    /// Takes over a listener.
    pub(super) fn new(acceptor: Acceptor, routes: Routes, tls: Option<Arc<ServerConfig>>) -> Self {
        Self { acceptor, talk: Talk { routes: Arc::new(routes), tls } }
    }

    /// Serves for ever.
    pub(super) async fn run(self) {
        let Self { acceptor, talk } = self;
        acceptor.serve(MOST_CONNECTIONS, |connection| talk.clone().with(connection)).await;
    }
}

impl Talk {
    async fn with(self, connection: Connection) {
        let Some(tls) = self.tls else {
            return plainly(self.routes, connection).await;
        };
        let agreed = timeout(HEAD_PATIENCE, TlsAcceptor::from(tls).accept(connection)).await;
        if let Ok(Ok(connection)) = agreed {
            plainly(self.routes, connection).await;
        }
    }
}

async fn plainly(routes: Arc<Routes>, connection: impl Stream + 'static) {
    answer(connection, |request| routes.answer(&request).whole()).await;
}
