//! Applies a job's weight to its block I/O, too, if the kernel supports it.

use std::sync::atomic::Ordering;

use paceline_policy::limiter::DEFAULT_WEIGHT;
use tracing::{info, warn};

use super::Actuator;
use super::target::Target;

impl Actuator {
    /// The weight of a container's block I/O that goes with a weight of its CPU; `None` if the kernel
    /// has no such weights.
    pub(super) fn block_io_weight(&self, target: &Target, weight: u64) -> Option<u64> {
        let weight = target.io.as_ref().map(|io| io.like(weight, DEFAULT_WEIGHT));
        if weight.is_none() && !self.logged_no_io_weight.swap(true, Ordering::Relaxed) {
            info!("this kernel has no weights for block I/O: weights apply to the CPU only");
        }
        weight
    }
}

/// Sets the weight of a container's block I/O. It writes the kernel's file directly, because the engine
/// silently drops the weight if it knows only an older name of that file.
pub(super) fn set_block_io_weight(target: &Target, weight: u64) {
    let Some(io) = &target.io else { return };
    // The CPU weight is what matters: a failure here is not an error.
    if let Err(error) = io.set(weight) {
        warn!("cannot set the block I/O weight of container {}: {error}", target.name());
    }
}
