//! The HTTP endpoint, on a thread of its own: it reads the job, which never waits for it.
//!
//! The `observer` reads the job a few times a second, keeps a bounded history, and derives signals
//! from it. The loop never waits for this thread. News that must be known at once (a target, an end,
//! a finished checkpoint) rings the `bell`. Requests to the loop are one flag that the loop reads.

mod body;
#[cfg(feature = "page")]
mod chart;
mod cpu;
mod events;
pub(crate) mod listen;
mod metrics_text;
mod observer;
#[cfg(feature = "page")]
mod page;
mod routes;
mod server;
mod status_file;
mod thread;

pub(crate) use metrics_text::{Format, render};
pub use routes::all_routes;
pub(crate) use thread::ServerThread;
