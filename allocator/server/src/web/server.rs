//! The HTTP server of the page, with TLS if configured.

use std::sync::Arc;

use axum::Router;
use paceline_local::{Acceptor, Connection, HEAD_TIMEOUT, Stream, answer};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tower::ServiceExt;

/// How many connections there may be. A browser opens six.
const MAX_CONNECTIONS: usize = 64;

/// Serves until it is dropped.
pub(super) async fn run(acceptor: Acceptor, router: Router, tls: Option<Arc<ServerConfig>>) {
    let handle = |connection| handle(connection, router.clone(), tls.clone());
    acceptor.serve(MAX_CONNECTIONS, handle).await;
}

async fn handle(connection: Connection, router: Router, tls: Option<Arc<ServerConfig>>) {
    let Some(tls) = tls else {
        return plainly(connection, router).await;
    };
    let agreed = timeout(HEAD_TIMEOUT, TlsAcceptor::from(tls).accept(connection)).await;
    if let Ok(Ok(connection)) = agreed {
        plainly(connection, router).await;
    }
}

async fn plainly(connection: impl Stream + 'static, router: Router) {
    answer(connection, |request| {
        let answer = router.clone().oneshot(request);
        async { answer.await.unwrap_or_else(|never| match never {}) }
    })
    .await;
}
