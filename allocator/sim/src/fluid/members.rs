use std::collections::BTreeMap;

use super::Index;
use super::member::Member;

/// The jobs of a node. They stand side by side in memory, in no order, since whoever reads one
/// reads all most of the time; where each stands is found by its number.
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

    /// A job comes. One of its number that is there already goes.
    pub(super) fn insert(&mut self, job: Index, member: Member) {
        self.remove(job);
        self.places.insert(job, self.all.len());
        self.all.push((job, member));
    }

    pub(super) fn remove(&mut self, job: Index) {
        let Some(place) = self.places.remove(&job) else { return };
        self.all.swap_remove(place);
        // The last one stands there now, unless it was the last that went.
        if let Some((moved, _)) = self.all.get(place) {
            self.places.insert(*moved, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::member::Clocks;
    use super::super::tests::party;
    use super::*;

    proptest! {
        #[test]
        fn whoever_comes_and_goes_the_others_are_found(
            steps in prop::collection::vec((0..6_usize, any::<bool>()), 0..40),
        ) {
            let mut members = Members::default();
            let mut goals = BTreeMap::new();
            for (step, (job, comes)) in (0_u32..).zip(steps) {
                if comes {
                    let goal = f64::from(step);
                    let member = Member::new(party(1.0, 1.0), goal, 0.0, Clocks::default());
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
