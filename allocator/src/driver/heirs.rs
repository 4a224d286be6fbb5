//! Containers that are to take the place of others: they were made for a move, and are no jobs of
//! their own.

use std::collections::BTreeMap;

use super::candidate::Orders;
use crate::observe::container::Container;

/// By the engine's full id.
#[derive(Debug, Default)]
pub(super) struct Heirs(BTreeMap<String, Heir>);

/// One that takes the place of another one, once that is gone.
#[derive(Debug)]
struct Heir {
    source: String,
    /// The name that it has then.
    name: String,
    orders: Orders,
    is_due: bool,
}

/// Its time has not come.
#[derive(Debug, PartialEq)]
pub(super) struct NotYet;

impl Heirs {
    /// The container `id` is to take the place of `source`, under its `name`.
    pub(super) fn withhold(&mut self, id: String, source: String, name: String) {
        let heir = Heir { source, name, orders: Orders::default(), is_due: false };
        self.0.insert(id, heir);
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
            heir.orders = orders.clone();
        }
    }

    /// What is set for a container by way of the one whose place it takes, if it takes one; `taken`
    /// says whether a container is still there.
    pub(super) fn enter(
        &mut self,
        it: &Container,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Option<Orders>, NotYet> {
        let Some(heir) = self.0.get(&it.id) else { return Ok(None) };
        // What was seen before the move was over is out of date.
        if !heir.is_due || taken(&heir.source) || heir.name != it.name {
            return Err(NotYet);
        }
        Ok(self.0.remove(&it.id).map(|heir| heir.orders))
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerInspectResponse;
    use serde_json::json;

    use super::*;

    fn container(id: &str, name: &str) -> Container {
        let described = json!({"Id": id, "Name": name});
        serde_json::from_value::<ContainerInspectResponse>(described).unwrap().into()
    }

    #[test]
    fn an_heir_enters_when_the_move_is_over_the_other_one_gone_and_its_name_its_own() {
        let mut heirs = Heirs::default();
        heirs.withhold("new".to_owned(), "old".to_owned(), "vae".to_owned());
        let (early, late) = (container("new", "/vae-to-b"), container("new", "/vae"));
        assert_eq!(heirs.enter(&late, |_| false).err(), Some(NotYet));
        heirs.let_in("new");
        assert_eq!(heirs.enter(&late, |id| id == "old").err(), Some(NotYet));
        assert_eq!(heirs.enter(&early, |_| false).err(), Some(NotYet));
        assert!(heirs.enter(&late, |_| false).unwrap().is_some());
        assert!(heirs.enter(&late, |_| true).unwrap().is_none(), "it is one like any other now");
    }

    #[test]
    fn one_that_takes_no_place_after_all_is_a_container_like_any_other() {
        let mut heirs = Heirs::default();
        heirs.withhold("new".to_owned(), "old".to_owned(), "vae".to_owned());
        heirs.forget("new");
        assert!(heirs.enter(&container("new", "/x"), |_| true).unwrap().is_none());
    }
}
