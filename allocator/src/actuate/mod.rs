//! Writing limits, and putting them back. Nothing here has an opinion on what a limit should be.
//!
//! The order of things is fixed: a container's original limits are on disk before the first write
//! to it ([`originals`]), every write goes the way that the engine accepts for this container
//! (`ways`), or past the engine if that is asked for ([`Means`]), and what the kernel then has is
//! read back ([`Actuator`]). What was written is remembered (`ledger`), so that somebody else's
//! change is told from our own ([`Drift`]).

mod actuator;
mod block_io;
mod drift;
mod error;
pub mod fence;
mod ledger;
mod lock;
mod means;
pub mod memory;
pub mod originals;
mod prepare;
mod restore;
mod target;
mod way;
mod ways;

pub use actuator::Actuator;
pub use drift::Drift;
pub use error::LimitError;
pub use means::{Means, OnDrift};
pub use restore::Restored;
pub use ways::first_way;

#[cfg(test)]
mod tests;
