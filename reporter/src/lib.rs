#![doc = include_str!("../README.md")]

mod bell;
mod builder;
mod checkpoint;
mod doing;
mod endpoint;
mod extension;
mod handle;
mod hot;
mod instance;
mod job;
mod later;
#[cfg(feature = "metrics")]
mod recorder;
mod settings;
mod signals;
#[cfg(feature = "sigterm")]
mod sigterm;
mod start_error;
#[cfg(feature = "tch")]
mod tensor;

pub use paceline_wire as wire;
pub use paceline_wire::Direction;

pub use crate::builder::Builder;
pub use crate::checkpoint::{CheckpointRequest, Reason};
pub use crate::endpoint::LocalAddr;
pub use crate::extension::{Extension, Posted};
pub use crate::handle::{Batch, Evaluation, Reporter};
pub use crate::start_error::StartError;
