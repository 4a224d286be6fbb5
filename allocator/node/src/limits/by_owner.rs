//! Who has set the limits in force. A cap that is there before our first write is its owner's, also one that
//! the engine does not know. One that an allocator has left is not: records, locks and marks tell them apart.

use std::sync::PoisonError;

use paceline_runtime::processes::{is_job, mark_of_another};

use super::Actuator;
use super::originals::{Original, Originals};

/// What is known of the limits that a container's owner has set.
#[derive(Clone, Debug, PartialEq)]
pub enum ByOwner {
    /// We have written to the container: its owner's limits are recorded.
    Recorded(Box<Original>),
    /// No allocator has written to it: what is in force is its owner's.
    InForce,
    /// What is in force may be an allocator's: of another one, or of a run whose record is lost or cannot be
    /// read. Nothing is written to such a container.
    Unknown,
}

impl Actuator {
    /// What is known of the limits that the owner of container `id` has set. It reads a small file at most,
    /// and asks no engine.
    pub fn by_owner(&self, id: &str) -> ByOwner {
        match self.originally(id) {
            Ok(Some(original)) => ByOwner::Recorded(Box::new(original)),
            Ok(None) if !self.has_leftover(id) && !self.originals.are_elsewhere(id) => {
                ByOwner::InForce
            }
            Ok(None) | Err(_) => ByOwner::Unknown,
        }
    }

    /// Whether another engine's folder has a record of the container, or its record is lost.
    fn has_leftover(&self, id: &str) -> bool {
        let leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        leftovers.iter().any(|leftover| leftover.id == id)
    }
}

impl Originals {
    /// Whether the lock of a container without a record names a state folder with its originals, or a
    /// job has the mark of another user's allocator.
    fn are_elsewhere(&self, id: &str) -> bool {
        let named = self.engine_lock().as_ref().is_some_and(|locks| locks.names_a_record(id));
        named || (is_job(id) && mark_of_another(id).is_some())
    }
}
