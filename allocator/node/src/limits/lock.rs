//! Locks: of a state folder, of an engine, and of each container that is written to.
//!
//! All are held by the kernel for an open file, so that they end with the process. A lock's file names
//! its holder. The engine's lock and the containers' locks lie in one folder of the machine, which
//! belongs to root, so that no other user can take them. A user of Docker who is not root runs
//! the allocator in a container of root's, where this folder is mounted.
//!
//! - A state folder has one holder for each engine, as in version 0.1.0.
//! - An engine has one allocator that manages all opted-in containers, or any number of allocators that
//!   are confined to some of them by labels. A restore works beside them.
//! - A container has one holder, from the first write to the end of its record. Without its process, the
//!   lock's file still names the state folder that has the container's originals.

mod claim;
mod engine;
mod file;
mod folder;

use std::time::Duration;

pub(super) use claim::{Abandoned, Claim};
pub(super) use engine::{EngineLock, engine_file};
pub(super) use folder::{FolderLock, ReadOnly};

/// How long a start waits for a lock. `paceline doctor` and a search for leftovers hold locks for an
/// instant.
pub const START_WAIT: Duration = Duration::from_millis(500);

/// Which containers of an engine an allocator manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that opted in.
    All,
    /// Those with certain labels.
    Some,
    /// None: it restores those with a record. Their own locks are enough for that, so that limits come
    /// back while another allocator works on the engine.
    Recorded,
}

#[cfg(test)]
mod tests;
