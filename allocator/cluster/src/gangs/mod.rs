//! Distributed jobs on a Swarm: parameter servers and workers that a policy places, starts and
//! scales together.
//!
//! A TOML [`mod@file`] describes a job. Submitting it creates one service for each task ([`spec`]),
//! at first without a container. So Docker keeps the record of what waits, what runs and where, and
//! any manager can continue from it. [`state`] turns Docker's state into [`job`]s and into the
//! frame that a policy answers. [`decider`] turns the answer into [`orders`] for services, and
//! `placing` carries them out. All modules except `placing` and [`submit`] are pure.
//!
//! Once a second, `placing` reads machines, services and tasks. A turn withdraws the tasks of ended
//! jobs, undoes starts that were cut short, and places tasks where their owners want them. The policy
//! is asked only in a turn that has nothing to undo and no owner's task to place. Withdrawals are
//! carried out before placements. While its last answer is being executed, the policy is not asked,
//! so no frame is older than its effects.

pub mod decider;
#[cfg(test)]
mod fake;
pub mod file;
pub mod job;
pub mod orders;
mod placeholders;
mod placing;
pub mod spec;
pub mod state;
pub mod submit;

pub use decider::PlacementPolicy;
pub use file::{Gang, GangError};
pub(super) use placing::{Placing, Turn};
