#![doc = include_str!("../README.md")]

mod address;
mod builder;
mod clock;
mod environment;
mod handle;
mod histogram;
mod host;
mod instance;
mod job;
mod ledger;
mod listen;
mod metrics_text;
mod routes;
mod server;
mod settings;
mod slot;
mod start_error;
mod tally;
mod thread;
mod window;

pub use paceline_wire::Direction;

pub use crate::address::LocalAddr;
pub use crate::builder::Builder;
pub use crate::handle::{Batch, Reporter};
pub use crate::start_error::StartError;
