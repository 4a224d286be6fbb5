//! What the endpoints on a machine have in common, a job's and the allocator's page: how they listen,
//! whom they answer, and for how long.
//!
//! Anybody on the machine may connect, be it to do harm: connections are few, each is short, and a
//! peer that dawdles is cut off.

mod host;
mod patience;
mod server;
mod socket;

pub use host::{is_local, is_strangers};
pub use patience::Patience;
pub use server::{Acceptor, Connection, HEAD_PATIENCE, Stream, answer};
pub use socket::{SocketFile, bind_unix};
