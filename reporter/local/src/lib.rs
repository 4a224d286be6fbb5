//! What a job's endpoint and the allocator's page have in common: how they listen, whom they answer,
//! and for how long.
//!
//! Any process on the machine may connect, also a hostile one. So the number of connections and the
//! time of each are limited, and a slow peer is disconnected.

mod host;
mod runtime;
mod server;
mod socket;
mod write_timeout;

pub use host::{is_cross_origin, is_cross_site, is_local};
pub use runtime::runtime;
pub use server::{Acceptor, Connection, HEAD_TIMEOUT, Stream, answer};
pub use socket::SocketFile;
#[cfg(unix)]
pub use socket::bind_unix;
pub use write_timeout::WriteTimeout;
