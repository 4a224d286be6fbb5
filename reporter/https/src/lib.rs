//! One request to a receiver, by HTTP or HTTPS, with a bounded answer.
//!
//! Each request has a connection of its own, and redirects are not followed. The caller bounds the time.

mod request;
mod trust;

pub use request::{Answer, Receiver, SendError, send};
pub use trust::{NoRoots, connector, machine_roots};
