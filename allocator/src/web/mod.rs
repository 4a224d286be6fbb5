//! What a browser and Prometheus see of a run: the page, the JSON behind it, the metrics.
//!
//! It knows [`Live`] and nothing else of the driver, and only reads; what a cluster's manager may have
//! done is done by the [`Hands`] that an agent lends it. A `Keeper`
//! follows the snapshots and keeps a bounded past of them; the server answers from that. Whoever
//! can reach the address may read all of it, so the address is this machine's own, unless a token
//! and TLS stand before it.

mod access;
mod address;
mod answer;
mod history;
mod keeper;
mod listen;
mod metrics;
mod page;
mod routes;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;

use paceline_local::SocketFile;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::cluster::Hands;
use crate::live::Live;
use keeper::Keeper;
use listen::Bound;
use routes::Routes;
use server::Server;

pub use address::{Address, NoAddress};
pub use settings::Settings;

/// A page that is served for as long as this lives.
#[derive(Debug)]
pub struct Web {
    address: Address,
    // It goes before the socket closes: a successor cannot have put its own in its place yet.
    _file: Option<SocketFile>,
    _server: AbortOnDropHandle<()>,
}

impl Web {
    /// Where it is served.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Serves what `live` shows, unless the settings say that nothing is to be served.
///
/// An address that was asked for and cannot be had is an error. The default address may be another
/// program's: then there is a warning and no page, since jobs are managed without one as well.
#[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
pub async fn serve(
    settings: &Settings,
    live: Live,
    hands: Option<Hands>,
) -> anyhow::Result<Option<Web>> {
    let address = settings.listen.clone().unwrap_or_default();
    let Some(plan) = settings.plan(&address).await? else {
        return Ok(None);
    };
    let Bound { acceptor, address, file } = match plan.bind().await {
        Ok(bound) => bound,
        Err(error) if settings.listen.is_none() => {
            warn!("{error:#}: there is no page and no API in this run");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    info!(address = address.link(plan.tls.is_some()), "the page and the API are served");
    let keeper = Arc::new(Keeper::new(live));
    let routes = Routes::new(Arc::clone(&keeper), plan.access, hands);
    let server = Server::new(acceptor, routes, plan.tls);
    let serving = async move {
        tokio::join!(keeper.run(), server.run());
    };
    let server = AbortOnDropHandle::new(tokio::spawn(serving));
    Ok(Some(Web { address, _file: file, _server: server }))
}
