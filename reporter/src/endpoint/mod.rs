//! The HTTP endpoint, on a thread of its own: it reads the job and is never waited for.

pub(crate) mod address;
mod body;
mod cpu;
mod events;
pub(crate) mod listen;
mod metrics_text;
mod observer;
mod routes;
mod server;
mod status_file;
mod thread;

pub(crate) use address::Address;
pub use address::LocalAddr;
pub(crate) use thread::ServerThread;
