//! Writes limits and restores them. Nothing here decides what a limit should be.
//!
//! The order is fixed. A container's original limits are recorded before the first write to it
//! ([`originals`]). A write uses the control group's files, or a request that the engine accepts for this
//! container ([`ActuatorBackend`]). Then the kernel's limits are read back ([`Actuator`]). What was
//! written is remembered (`written_state`) to notice outside changes ([`Drift`]).
//!
//! A value that the kernel does not show is written once more, and is an error after that. An engine
//! may fail after it has written, or report success without writing.
//!
//! There are two means (`means`). The control group's files take microseconds and leave `HostConfig`
//! unchanged, so a restarted container has its owner's limit until drift shows it. The engine is not
//! asked again either, while the kernel shows what was last described or written. The engine's two
//! fields for a CPU limit exclude each other for a container's whole life, so a request depends on what
//! the container has (`plan_writes`), and neither field can be cleared afterwards. `--actuator auto`
//! therefore prefers the files, and takes the engine where they cannot be written.
//!
//! Before each write, what it may leave is recorded on disk ([`originals`]). So a value that is neither
//! the original nor ours was set by another program or person, whether this process has lived until
//! then or not (`follow`). It becomes the container's original at once, and is never overwritten by an
//! older one. `drift` compares the kernel's file with the last value read back, and asks the engine
//! only where they differ. `--on-drift reassert` writes the limit again. `--on-drift yield` restores
//! what is still ours, and leaves the container alone until `paceline manage`.
//!
//! A restore tries the engine's exact value, then an equivalent one, then the control group's file.
//! It covers both the limit in force and the limit after a restart. A container that the engine does not
//! know keeps its record until it is known to be gone (`absent`). Memory is not limited.
//! Containers started by Swarm or Kubernetes, and limited ones started by compose, are refused
//! unless `--adopt` names them (`ownership`).

mod absent;
mod actuator;
mod backend;
mod block_io;
mod by_owner;
mod drift;
mod error;
mod follow;
pub mod inspection;
mod leftovers;
mod limit_write;
mod lock;
mod means;
pub mod originals;
pub mod ownership;
mod plan_writes;
mod prepare;
mod record;
mod record_files;
mod restore;
mod restored;
mod silence;
mod target;
mod written_state;

pub use actuator::Actuator;
pub use backend::{ActuatorBackend, OnDrift};
pub use by_owner::ByOwner;
pub use drift::Drift;
pub use error::LimitError;
pub use leftovers::{Leftover, NotTaken};
pub use plan_writes::first_write;
pub use restored::{Report, Restored, Values};
pub(crate) use silence::HANG;
pub use silence::{RESTORE_ALL_TIMEOUT, RESTORE_CONCURRENCY};

#[cfg(test)]
mod tests;
