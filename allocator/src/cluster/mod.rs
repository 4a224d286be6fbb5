//! Many machines under one policy, on a cluster's own engine: Docker Swarm.
//!
//! Each machine has an agent: the allocator of that machine, which serves what it knows, and lends the
//! manager its [`Hands`] for the steps of a move. The engine says which machines and services there are
//! ([`swarm`]), agents what runs there (`feed`, by the [`Asker`]), and the [`world`], which is pure, has
//! one policy decide over all of it. Jobs are moved by their `services`. Distributed jobs, of many
//! tasks, are placed and scaled as wholes ([`gangs`]). [`Manager`] joins these, and shows the cluster
//! by the snapshot that a single machine is shown by.

pub mod ask;
mod engine;
mod feed;
pub mod gangs;
mod hands;
pub mod lost;
mod manager;
mod services;
pub mod swarm;
mod twin;
pub mod world;

pub use ask::Asker;
pub use hands::{Done, Hands, Order};
pub use manager::{Manager, Records};
