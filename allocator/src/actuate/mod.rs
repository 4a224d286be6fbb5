//! Writing limits, and putting them back. Nothing here has an opinion on what a limit should be.
//!
//! The order of things is fixed: a container's original limits are on disk before the first write
//! to it ([`originals`]), every write goes the way that the engine accepts for this container
//! (`ways`), and what the kernel then has is read back ([`Actuator`]).

mod actuator;
pub mod originals;
mod ways;

pub use actuator::{Actuator, LimitError, Restored};
pub use ways::first_way;
