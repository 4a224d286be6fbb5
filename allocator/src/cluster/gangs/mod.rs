//! Distributed jobs on a Swarm: parameter servers and workers, which a policy places, starts and
//! scales as wholes.
//!
//! A job is a file ([`mod@file`]). To submit it is to make one service for each of its tasks ([`spec`]),
//! without a container as yet: what waits, what runs and where is the engine's own record, so that
//! any manager goes on from there. What the engine says is [`seen`] as [`job`]s and as the frame that a
//! policy answers, and its answer turned into [`orders`] for services, by a [`judge`]; `placing` has
//! them carried out. All but the latter and [`submit`] is pure.

#[cfg(test)]
mod fake;
pub mod file;
pub mod job;
pub mod judge;
pub mod orders;
mod placing;
pub mod seen;
pub mod spec;
pub mod submit;
mod words;

pub use file::{Gang, GangError};
pub use judge::Mind;
pub(super) use placing::{Placing, Turn};
