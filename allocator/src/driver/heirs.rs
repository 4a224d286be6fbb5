//! Containers that are to take the place of others: they were made for a move, and are no jobs of
//! their own.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::candidate::Orders;

/// By the engine's full id.
#[derive(Debug, Default)]
pub(super) struct Heirs(BTreeMap<String, Heir>);

/// One that takes the place of another one, once that is gone.
#[derive(Debug)]
struct Heir {
    source: String,
    legacy: Legacy,
    is_due: bool,
}

/// What goes from one container to the other.
#[derive(Clone, Debug)]
pub(super) struct Legacy {
    /// It is the same job, whatever the container is called.
    pub(super) job: JobId,
    pub(super) orders: Orders,
}

/// Its time has not come.
#[derive(Debug, PartialEq)]
pub(super) struct NotYet;

impl Heirs {
    /// The container `id` is to take the place of `source`, and go on with its `job`.
    pub(super) fn withhold(&mut self, id: String, source: String, job: JobId) {
        let legacy = Legacy { job, orders: Orders::default() };
        self.0.insert(id, Heir { source, legacy, is_due: false });
    }

    /// It is not to take it any more.
    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// It takes the place as soon as it is free.
    pub(super) fn let_in(&mut self, id: &str) {
        if let Some(heir) = self.0.get_mut(id) {
            heir.is_due = true;
        }
    }

    /// A container is gone for which this was set.
    pub(super) fn bequeath(&mut self, source: &str, orders: &Orders) {
        for heir in self.0.values_mut().filter(|heir| heir.source == source) {
            heir.legacy.orders = orders.clone();
        }
    }

    /// What a container has from the one whose place it takes, if it takes one; `taken` says
    /// whether a container is still there.
    pub(super) fn enter(
        &mut self,
        id: &str,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Option<Legacy>, NotYet> {
        let Some(heir) = self.0.get(id) else { return Ok(None) };
        if !heir.is_due || taken(&heir.source) {
            return Err(NotYet);
        }
        Ok(self.0.remove(id).map(|heir| heir.legacy))
    }

    /// Forgets those that were to take a place by now and never will; each with the job that ends
    /// by that.
    pub(super) fn lost(&mut self, never: impl Fn(&str) -> bool) -> Vec<(String, JobId)> {
        let lost = self.0.extract_if(.., |id, heir| heir.is_due && never(id));
        lost.map(|(id, heir)| (id, heir.legacy.job)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heirs() -> Heirs {
        let mut heirs = Heirs::default();
        heirs.withhold("new".to_owned(), "old".to_owned(), JobId::new("vae").unwrap());
        heirs
    }

    #[test]
    fn an_heir_enters_when_the_move_is_over_and_the_other_one_gone() {
        let mut heirs = heirs();
        assert_eq!(heirs.enter("new", |_| false).err(), Some(NotYet));
        heirs.let_in("new");
        assert_eq!(heirs.enter("new", |id| id == "old").err(), Some(NotYet));
        let legacy = heirs.enter("new", |_| false).unwrap().unwrap();
        assert_eq!(legacy.job.as_str(), "vae");
        assert!(heirs.enter("new", |_| true).unwrap().is_none(), "it is one like any other now");
    }

    #[test]
    fn one_that_takes_no_place_after_all_is_a_container_like_any_other() {
        let mut heirs = heirs();
        heirs.forget("new");
        assert!(heirs.enter("new", |_| true).unwrap().is_none());
    }

    #[test]
    fn one_that_is_due_and_gone_is_a_job_that_has_ended() {
        let mut heirs = heirs();
        assert!(heirs.lost(|_| true).is_empty(), "its move may still be undone");
        heirs.let_in("new");
        assert!(heirs.lost(|_| false).is_empty());
        let job = JobId::new("vae").unwrap();
        assert_eq!(heirs.lost(|id| id == "new"), [("new".to_owned(), job)]);
        assert!(heirs.lost(|_| true).is_empty(), "that is said once");
    }
}
