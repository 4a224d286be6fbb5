//! Containers that were created by a move to replace others. They are not jobs of their own before
//! they have replaced their source.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::watched::Orders;

/// The replacements, by the container engine's full id.
#[derive(Debug, Default)]
pub(super) struct Replacements(BTreeMap<String, Replacement>);

/// A container that replaces its source once that is gone.
#[derive(Debug)]
struct Replacement {
    source: String,
    handover: Handover,
    /// Whether the move has succeeded.
    is_due: bool,
}

/// What a replacement takes over from its source.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    /// The job's name, which stays the same whatever the container is called.
    pub(super) job: JobId,
    /// The settings that orders have made.
    pub(super) orders: Orders,
}

/// The move is not over, or the source still exists.
#[derive(Debug, PartialEq)]
pub(super) struct NotYet;

impl Replacements {
    /// The container `id` is to replace `source` and to continue its `job`.
    pub(super) fn hold_back(&mut self, id: String, source: String, job: JobId) {
        let handover = Handover { job, orders: Orders::default() };
        self.0.insert(id, Replacement { source, handover, is_due: false });
    }

    /// The container is not a replacement any more: the move was given up.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// The move has succeeded: the container replaces its source as soon as that is gone.
    pub(super) fn admit(&mut self, id: &str) {
        if let Some(replacement) = self.0.get_mut(id) {
            replacement.is_due = true;
        }
    }

    /// Keeps the settings of a source that is gone, for its replacements.
    pub(super) fn record_settings(&mut self, source: &str, orders: &Orders) {
        for replacement in self.0.values_mut().filter(|replacement| replacement.source == source) {
            replacement.handover.orders = orders.clone();
        }
    }

    /// What container `id` takes over from its source; `None` if it is not a replacement. `taken`
    /// tests whether a container still exists.
    pub(super) fn enter(
        &mut self,
        id: &str,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Option<Handover>, NotYet> {
        let Some(replacement) = self.0.get(id) else { return Ok(None) };
        if !replacement.is_due || taken(&replacement.source) {
            return Err(NotYet);
        }
        Ok(self.0.remove(id).map(|replacement| replacement.handover))
    }

    /// Forgets replacements that are due but gone, which `never` tests. Returns each with the job
    /// that ends by that.
    pub(super) fn lost(&mut self, never: impl Fn(&str) -> bool) -> Vec<(String, JobId)> {
        let lost = self.0.extract_if(.., |id, replacement| replacement.is_due && never(id));
        lost.map(|(id, replacement)| (id, replacement.handover.job)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacements() -> Replacements {
        let mut replacements = Replacements::default();
        replacements.hold_back("new".to_owned(), "old".to_owned(), JobId::new("vae").unwrap());
        replacements
    }

    #[test]
    fn replacement_enters_when_move_is_over_and_source_gone() {
        let mut replacements = replacements();
        assert_eq!(replacements.enter("new", |_| false).err(), Some(NotYet));
        replacements.admit("new");
        assert_eq!(replacements.enter("new", |id| id == "old").err(), Some(NotYet));
        let handover = replacements.enter("new", |_| false).unwrap().unwrap();
        assert_eq!(handover.job.as_str(), "vae");
        assert!(
            replacements.enter("new", |_| true).unwrap().is_none(),
            "it is an ordinary container now"
        );
    }

    #[test]
    fn forgotten_replacement_is_an_ordinary_container() {
        let mut replacements = replacements();
        replacements.forget("new");
        assert!(replacements.enter("new", |_| true).unwrap().is_none());
    }

    #[test]
    fn due_replacement_that_is_gone_ends_its_job() {
        let mut replacements = replacements();
        assert!(replacements.lost(|_| true).is_empty(), "its move may still be undone");
        replacements.admit("new");
        assert!(replacements.lost(|_| false).is_empty());
        let job = JobId::new("vae").unwrap();
        assert_eq!(replacements.lost(|id| id == "new"), [("new".to_owned(), job)]);
        assert!(replacements.lost(|_| true).is_empty(), "it is reported once");
    }
}
