#![doc = include_str!("../README.md")]

mod address;
mod bell;
mod builder;
mod checkpoint_log;
mod checkpoint_request;
mod doing;
mod endpoint;
mod extension;
mod handle;
mod hot;
mod instance;
mod job;
mod later;
mod meter;
#[cfg(feature = "metrics")]
mod recorder;
mod say;
mod settings;
mod signals;
#[cfg(feature = "sigterm")]
mod sigterm;
mod start_error;
#[cfg(feature = "tch")]
mod tensor;
#[cfg(feature = "tensorboard")]
mod tensorboard;

pub use paceline_wire as wire;
pub use paceline_wire::Direction;

pub use crate::address::{Address, InvalidAddress, LocalAddr};
pub use crate::builder::Builder;
pub use crate::checkpoint_log::Reason;
pub use crate::checkpoint_request::CheckpointRequest;
// For the programs that serve or ask on one thread.
#[doc(hidden)]
pub use paceline_local::runtime;
// For the test of the endpoint's description.
#[doc(hidden)]
pub use crate::endpoint::all_routes;
pub use crate::extension::{Extension, Posted};
pub use crate::handle::{Batch, Evaluation, Reporter};
pub use crate::meter::Meter;
pub use crate::start_error::StartError;
