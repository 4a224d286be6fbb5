//! A job's weight counts for its block I/O, too, where the kernel has weights for that.

use std::sync::atomic::Ordering;

use paceline_policy::limiter::DEFAULT_WEIGHT;
use tracing::{info, warn};

use super::Actuator;
use super::target::Target;

impl Actuator {
    /// Gives a container's block I/O what its CPU has. The engine is not asked: it drops the weight
    /// without a word where its own idea of the kernel's file is out of date.
    pub(super) fn weigh_block_io(&self, target: &Target, weight: u64) {
        let Some(io) = &target.io else {
            if !self.said_no_io_weight.swap(true, Ordering::Relaxed) {
                info!("this kernel has no weights for block I/O: weights are of the CPU alone");
            }
            return;
        };
        // The CPU's weight is what was asked for: a job is not left without it for this.
        if let Err(error) = io.set(io.like(weight, DEFAULT_WEIGHT)) {
            warn!("container {} keeps the weight of its block I/O: {error}", target.name());
        }
    }
}
