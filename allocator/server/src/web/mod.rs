//! The HTTP server of a run: the page, its JSON API, and the metrics. The [control
//! socket](crate::control) has the same routes.
//!
//! It depends on nothing of the controller but [`DaemonHandle`](paceline_api::live::DaemonHandle),
//! and only reads. The exception is a cluster's manager, which acts through the [`AgentActions`] of
//! an agent. [`Snapshots`] follow the run and keep a bounded history; requests are answered from
//! them. Every client that can reach the address may read everything. So the default address is
//! local, and other addresses need a token and TLS.
//!
//! History is bounded: 450 points for each job, from 1 s apart to 16 s apart as it grows to two
//! hours; 200 decisions; 256 jobs. Ended jobs stay for up to two hours. Readers get an event once a
//! second, or at once after a decision. JSON and metrics are made once for each snapshot. Metrics
//! are written from the latest snapshot alone, so ended jobs disappear and the number of series is
//! bounded. The `metrics` facade counts in whole numbers. So counters of seconds and bytes are
//! gauges there, and counters in the text.
//!
//! The address is loopback or a Unix socket with mode 0660. Any other address needs a token and TLS.
//! On loopback, a request must name an address or `localhost`, and requests from pages of other
//! sites are refused. Only GET and HEAD are allowed to readers. Heads have at most 16 KiB and 64
//! lines, within 10 s. There are 64 connections of at most an hour, 32 of them with events. A reader
//! that takes nothing for 10 s is cut off; a slow one misses snapshots.
//!
//! The page is HTML, CSS and modules without a framework, built into the program. Its
//! `Content-Security-Policy` allows only its own files, and Trusted Types forbid markup made from
//! text. So a job's name is always shown as text. Charts are SVG, and are redrawn only while they
//! are visible.

mod address;
mod answer;
mod export;
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

use axum::Router;
use paceline_local::SocketFile;
use paceline_node::migration::agent_actions::AgentActions;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use listen::Bound;

pub use address::{Address, NoAddress};
pub(crate) use answer::{JSON, whole};
pub use export::{Export, Exporting};
pub use keeper::Snapshots;
pub(crate) use keeper::json;
pub use routes::routes;
pub(crate) use routes::{Access, router};
pub use settings::Settings;

/// Adds the schemas of the answers that only this server makes: `Decisions` and `JobHistory`.
#[cfg(feature = "schema")]
pub fn add_schemas(generator: &mut schemars::SchemaGenerator) {
    generator.subschema_for::<history::Record<'static>>();
    generator.subschema_for::<history::Figures<'static>>();
}

/// How many listeners of events the page may have.
const MAX_LISTENERS: usize = 32;

/// The running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Web {
    address: Address,
    // Dropped before the listener closes, so that it cannot remove the file of a successor.
    _file: Option<SocketFile>,
    _server: AbortOnDropHandle<()>,
}

impl Web {
    /// The address that it listens on.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Serves the snapshots; `None` if the settings disable the page.
///
/// An explicit address that cannot be bound is an error. If the default address is taken, the run
/// continues with a warning and without a page.
#[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
pub async fn serve(
    settings: &Settings,
    snapshots: impl Into<Snapshots>,
    actions: Option<AgentActions>,
) -> anyhow::Result<Option<Web>> {
    let address = settings.listen.clone().unwrap_or_default();
    let Some(plan) = settings.plan(&address).await? else {
        return Ok(None);
    };
    let Bound { acceptor, address, file } = match plan.bind().await {
        Ok(bound) => bound,
        Err(error) if settings.listen.is_none() => {
            warn!("{error:#}; this run has no page and no API");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    info!(address = address.link(plan.tls.is_some()), "serving the page and the API");
    let router = router(snapshots.into(), plan.access, MAX_LISTENERS, actions, Router::new());
    let server = AbortOnDropHandle::new(tokio::spawn(server::run(acceptor, router, plan.tls)));
    Ok(Some(Web { address, _file: file, _server: server }))
}
