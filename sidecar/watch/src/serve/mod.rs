//! `serve`: all jobs of this machine on one page, and each job's page behind it.
//!
//! A browser reads neither Unix sockets nor other ports from a page, so requests for a job pass through
//! here. They only read, and their answers are bounded. A job's page is our own copy: what a job answers
//! is never taken for HTML.

mod proxy;
mod reply;
mod routes;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use paceline_local::{Acceptor, answer};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::ServeArgs;
use crate::error::{Ending, Error};
use crate::watcher::{self, Board, Rest};
use routes::Routes;

/// The default port of the page, below those of jobs.
const DEFAULT_PORT: u16 = 7222;
/// The most connections at once: some browsers, with a page of a job in each tab.
const MAX_CONNECTIONS: usize = 64;

/// Serves the page until SIGTERM, SIGINT or SIGHUP. `announce` gets its address.
///
/// # Errors
/// If an option or the address cannot be used.
pub async fn serve(args: ServeArgs, announce: impl FnOnce(&str)) -> Result<Ending, Error> {
    let search = args.search.search(&args.addresses)?;
    let listener = bind(args.listen.as_deref()).await?;
    let running = |error: io::Error| Error::Running(format!("cannot serve the page: {error}"));
    let address = listener.local_addr().map_err(running)?;
    let [mut interrupt, mut terminate, mut hang_up] =
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .map(signal)
            .into_iter()
            .collect::<io::Result<Vec<_>>>()
            .map_err(running)?
            .try_into()
            .map_err(|_| Error::Running("cannot handle signals; try again".to_owned()))?;
    announce(&format!("http://{address}/"));
    let board = Arc::new(Board::new());
    let routes = Arc::new(Routes::new(Arc::clone(&board)));
    let talk = move |connection| {
        let routes = Arc::clone(&routes);
        answer(connection, move |request| {
            let routes = Arc::clone(&routes);
            async move { routes.answer(request).await }
        })
    };
    tokio::select! {
        () = Box::pin(Acceptor::Tcp(listener).serve(MAX_CONNECTIONS, talk)) => {}
        () = Box::pin(watcher::run(&search, &board, Rest::WhileUnasked)) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(Ending::Done)
}

/// Listens on loopback: at the given address, or at the default port or a free one.
async fn bind(given: Option<&str>) -> Result<TcpListener, Error> {
    let Some(given) = given else {
        let at = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let bound = match at(DEFAULT_PORT).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => at(0).await,
            bound => bound,
        };
        return bound.map_err(|error| {
            Error::Running(format!(
                "cannot listen on 127.0.0.1:{DEFAULT_PORT}: {error}; name another by --listen"
            ))
        });
    };
    let found: Vec<SocketAddr> = given
        .to_socket_addrs()
        .map_err(|error| {
            Error::Usage(format!(
                "invalid --listen {given:?}: {error}; expected host:port, for example \
                 127.0.0.1:{DEFAULT_PORT}"
            ))
        })?
        .collect();
    if found.is_empty() || !found.iter().all(|address| address.ip().to_canonical().is_loopback()) {
        return Err(Error::Usage(format!(
            "invalid --listen {given:?}: expected a loopback address, since the page shows the jobs \
             of this machine to all who reach it, for example 127.0.0.1:{DEFAULT_PORT}; from another \
             machine use ssh -L {DEFAULT_PORT}:127.0.0.1:{DEFAULT_PORT}"
        )));
    }
    TcpListener::bind(&*found).await.map_err(|error| {
        Error::Usage(format!(
            "cannot listen on --listen {given}: {error}; end the program there, or name another address"
        ))
    })
}

#[cfg(test)]
mod tests;
