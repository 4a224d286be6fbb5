//! What was seen so far, as far as it is shown.

use std::collections::{BTreeMap, VecDeque};

use crate::live::snapshot::Snapshot;

/// So many looks are remembered.
const LENGTH: usize = 64;

/// The last snapshot, and each job's losses before it.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) last: Snapshot,
    losses: BTreeMap<String, VecDeque<f64>>,
}

impl History {
    /// Adds a look. Jobs that are gone are forgotten.
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.losses);
        for job in &snapshot.jobs {
            let mut losses = before.remove(&job.container).unwrap_or_default();
            losses.extend(job.loss);
            if losses.len() > LENGTH {
                losses.pop_front();
            }
            self.losses.insert(job.container.clone(), losses);
        }
        self.last = snapshot.clone();
    }

    /// A container's last losses, oldest first, `count` at most.
    pub(super) fn losses(&self, container: &str, count: usize) -> Vec<f64> {
        let losses = self.losses.get(container);
        let skip = losses.map_or(0, |losses| losses.len().saturating_sub(count));
        losses.into_iter().flatten().skip(skip).copied().collect()
    }
}
