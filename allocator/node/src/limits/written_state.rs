//! What this process has written to each container. Drift is a difference from this. What survives the
//! process is in [`super::originals`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_cgroup::{Cgroup, Quota};
use paceline_policy::Share;
use paceline_runtime::Container;

use super::target::Target;

/// What was written to every container, by the engine's full id.
#[derive(Debug, Default)]
pub(super) struct WrittenStates(Mutex<BTreeMap<String, WrittenState>>);

/// What was written to one container.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenState {
    /// The cap that was written, and the kernel's quota after that.
    pub(super) cap: Option<(Share, Option<Quota>)>,
    /// The weight that was written, and the kernel's weight after that on its own scale.
    pub(super) weight: Option<(u64, Option<u64>)>,
    cgroup: Option<Cgroup>,
    /// The engine's latest description of the container, until that changes.
    seen: Option<Seen>,
    /// The container was yielded to its owner and is not written to.
    pub(super) yielded: bool,
}

/// A container as the engine described it, and the kernel's limits at that time.
#[derive(Clone, Debug)]
struct Seen {
    target: Arc<Target>,
    quota: Option<Quota>,
    weight: Option<u64>,
}

impl WrittenStates {
    /// What was written to one container.
    pub(super) fn get(&self, id: &str) -> Option<WrittenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Changes the record of one container.
    pub(super) fn update(&self, id: &str, change: impl FnOnce(&mut WrittenState)) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(states.entry(id.to_owned()).or_default());
    }

    /// Forgets what was written, but not that a container was yielded.
    pub(super) fn clear(&self, id: &str) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.remove(id).filter(|state| state.yielded) {
            states.insert(
                id.to_owned(),
                WrittenState { yielded: state.yielded, ..WrittenState::default() },
            );
        }
    }

    /// Forgets a container.
    pub(super) fn remove(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl WrittenState {
    /// Records the container's state before a write.
    pub(super) fn before_write(&mut self, target: &Target) {
        self.cgroup.clone_from(&target.cgroup);
    }

    /// Records the engine's description of the container.
    pub(super) fn see(&mut self, target: Arc<Target>) {
        let (quota, weight) = (target.quota(), target.weight());
        self.seen = Some(Seen { target, quota, weight });
    }

    /// Whether this is the engine's latest description that was recorded.
    pub(super) fn has_seen(&self, container: &Container) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.target.container == *container)
    }

    /// Forgets the engine's description, because it is out of date.
    pub(super) fn forget_seen(&mut self) {
        self.seen = None;
    }

    /// Whether anything was written to the container.
    pub(super) fn is_written(&self) -> bool {
        self.cap.is_some() || self.weight.is_some()
    }

    /// The container as the engine described it, if the kernel's limits are still those of that time
    /// or of our last write. The engine need not be asked again then.
    pub(super) fn as_seen(&self) -> Option<Arc<Target>> {
        let seen = self.seen.as_ref()?;
        let quota = self.cap.map_or(seen.quota, |(_, left)| left)?;
        let weight = self.weight.map_or(seen.weight, |(_, left)| left)?;
        let now = &seen.target;
        let holds = now.quota() == Some(quota) && now.weight() == Some(weight);
        holds.then(|| Arc::clone(now))
    }

    /// Whether the kernel's limits are still those after the last write. Reads one or two files;
    /// `None` if they cannot be read.
    pub(super) fn holds(&self) -> Option<bool> {
        let cgroup = self.cgroup.as_ref()?;
        let cap = match self.cap {
            Some((_, left)) => cgroup.quota().ok()?.is_near(left?),
            None => true,
        };
        let weight = match self.weight {
            Some((_, left)) => cgroup.weight().ok()? == left?,
            None => true,
        };
        Some(cap && weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yielded_container_stays_so_until_it_is_removed() {
        let written = WrittenStates::default();
        written.update("4f2a", |state| state.yielded = true);
        written.clear("4f2a");
        assert!(written.get("4f2a").is_some_and(|state| state.yielded));
        written.remove("4f2a");
        assert!(written.get("4f2a").is_none());
    }
}
