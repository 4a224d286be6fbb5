//! A parameter server: several processes train one model, without waiting for each other.
//!
//! The parameters of a model, as one row of numbers, are cut into shards, each of which a [`Server`]
//! keeps and improves. A [`Worker`] computes gradients with its own copy, pushes them to all shards
//! and gets the parameters of that moment in return (Li et al., "Scaling Distributed Machine
//! Learning with the Parameter Server", OSDI 2014, with asynchronous consistency). Workers may come
//! and go at any time: a server only ever answers.
//!
//! Nothing here links libtorch. [`frame`] describes the wire format.

pub mod frame;
mod server;
mod shard;
mod slices;
mod traffic;
mod worker;

pub use crate::server::{News, Server, ServerConfig};
pub use crate::shard::{Adam, Shard};
pub use crate::slices::{Slice, SliceError};
pub use crate::traffic::{PeerTraffic, Traffic};
pub use crate::worker::{Model, Pushed, Worker, WorkerError};
