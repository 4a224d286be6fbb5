use std::collections::BTreeMap;

use super::Index;
use super::member::Member;

/// The jobs of a node. They are contiguous in memory, in no order, since most readers read all of
/// them. A map gives the position of each number.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    places: BTreeMap<Index, usize>,
    all: Vec<(Index, Member)>,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Their numbers, in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Index> {
        self.places.keys().copied()
    }

    pub(super) fn get(&self, job: Index) -> Option<&Member> {
        self.all.get(*self.places.get(&job)?).map(|(_, member)| member)
    }

    pub(super) fn get_mut(&mut self, job: Index) -> Option<&mut Member> {
        self.all.get_mut(*self.places.get(&job)?).map(|(_, member)| member)
    }

    /// All of them, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Index, &mut Member)> {
        self.all.iter_mut().map(|(job, member)| (*job, member))
    }

    /// Adds a job, replacing one of the same number.
    pub(super) fn insert(&mut self, job: Index, member: Member) {
        self.remove(job);
        self.places.insert(job, self.all.len());
        self.all.push((job, member));
    }

    pub(super) fn remove(&mut self, job: Index) {
        let Some(place) = self.places.remove(&job) else { return };
        self.all.swap_remove(place);
        // The last job is there now, unless it was the one removed.
        if let Some((moved, _)) = self.all.get(place) {
            self.places.insert(*moved, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::member::Clocks;
    use super::super::tests::demand;
    use super::*;

    proptest! {
        #[test]
        fn members_are_found_after_others_come_and_go(
            steps in prop::collection::vec((0..6_usize, any::<bool>()), 0..40),
        ) {
            let mut members = Members::default();
            let mut goals = BTreeMap::new();
            for (step, (job, comes)) in (0_u32..).zip(steps) {
                if comes {
                    let goal = f64::from(step);
                    let member = Member::new(demand(1.0, 1.0), goal, 0.0, Clocks::default());
                    members.insert(job, member);
                    goals.insert(job, goal);
                } else {
                    members.remove(job);
                    goals.remove(&job);
                }
                prop_assert_eq!(members.len(), goals.len());
                prop_assert!(members.numbers().eq(goals.keys().copied()));
                for job in 0..6 {
                    let goal = members.get(job).map(|member| member.goal);
                    prop_assert_eq!(goal, goals.get(&job).copied());
                    prop_assert_eq!(members.get_mut(job).map(|member| member.goal), goal);
                }
                let all = members.iter_mut().map(|(job, member)| (job, member.goal));
                prop_assert_eq!(&all.collect::<BTreeMap<_, _>>(), &goals);
            }
        }
    }
}
