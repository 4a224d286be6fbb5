//! The recent losses that the screen shows.

use std::collections::{BTreeMap, VecDeque};

use paceline_api::live::snapshot::Snapshot;

/// How many losses of a job are kept.
const MAX_LEN: usize = 64;

/// The last snapshot, and each job's losses before it.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) last: Snapshot,
    losses: BTreeMap<String, VecDeque<f64>>,
}

impl History {
    /// Adds a snapshot. Gone jobs are dropped.
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.losses);
        for job in &snapshot.jobs {
            let mut losses = before.remove(&job.container).unwrap_or_default();
            losses.extend(job.loss);
            if losses.len() > MAX_LEN {
                losses.pop_front();
            }
            self.losses.insert(job.container.clone(), losses);
        }
        self.last = snapshot.clone();
    }

    /// A container's last losses, oldest first, at most `count`.
    pub(super) fn losses(&self, container: &str, count: usize) -> Vec<f64> {
        let losses = self.losses.get(container);
        let skip = losses.map_or(0, |losses| losses.len().saturating_sub(count));
        losses.into_iter().flatten().skip(skip).copied().collect()
    }
}
