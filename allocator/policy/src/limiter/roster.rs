use std::cmp::Ordering;

use crate::unit::JobId;

/// Something of each job, by id, side by side in memory: as large as there are jobs, and quick to
/// go through, which every run of a policy does several times. To come or to go moves those behind,
/// but each comes and goes once, and is gone through many times.
#[derive(Clone, Debug)]
pub(crate) struct Roster<T>(Vec<(JobId, T)>);

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Roster<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, job: &JobId) -> Option<&T> {
        let at = self.find(job).ok()?;
        self.0.get(at).map(|(_, of)| of)
    }

    pub(crate) fn get_mut(&mut self, job: &JobId) -> Option<&mut T> {
        let at = self.find(job).ok()?;
        self.0.get_mut(at).map(|(_, of)| of)
    }

    /// All of them, in the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, of)| of)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, of)| of)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&JobId, &mut T)> {
        self.0.iter_mut().map(|(job, of)| (&*job, of))
    }

    /// What was there of this job is dropped.
    pub(crate) fn insert(&mut self, job: JobId, of: T) {
        match self.find(&job) {
            Ok(at) => {
                if let Some(there) = self.0.get_mut(at) {
                    *there = (job, of);
                }
            }
            Err(at) => self.0.insert(at, (job, of)),
        }
    }

    pub(crate) fn get_or_default(&mut self, job: &JobId) -> &mut T
    where
        T: Default,
    {
        let at = self.find(job).unwrap_or_else(|at| {
            self.0.insert(at, (job.clone(), T::default()));
            at
        });
        self.0.get_mut(at).map(|(_, of)| of).expect("it is there by now")
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(|(_, of)| keep(of));
    }

    pub(crate) fn remove(&mut self, job: &JobId) {
        if let Ok(at) = self.find(job) {
            self.0.remove(at);
        }
    }

    fn find(&self, job: &JobId) -> Result<usize, usize> {
        // Most ids that are compared are copies of one: of these, no letter is read.
        let same = |id: &JobId| std::ptr::eq(id.as_str(), job.as_str());
        self.0.binary_search_by(|(id, _)| if same(id) { Ordering::Equal } else { id.cmp(job) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_roster_is_a_map(
            steps in prop::collection::vec(("[a-e]", prop::option::of(0..9_u32)), 0..24),
        ) {
            let (mut map, mut roster) = (BTreeMap::new(), Roster::default());
            for (name, of) in steps {
                let job = JobId::new(name).unwrap();
                prop_assert_eq!(roster.get(&job), map.get(&job));
                prop_assert_eq!(roster.get_mut(&job), map.get_mut(&job));
                if let Some(of) = of {
                    map.insert(job.clone(), of);
                    roster.insert(job.clone(), of);
                } else {
                    map.remove(&job);
                    roster.remove(&job);
                }
                prop_assert_eq!(roster.len(), map.len());
                prop_assert!(roster.values().eq(map.values()));
                prop_assert!(roster.iter_mut().eq(map.iter_mut()));
                *roster.get_or_default(&job) += 1;
                *map.entry(job).or_default() += 1;
                roster.retain(|of| *of != 3);
                map.retain(|_, of| *of != 3);
                prop_assert!(roster.values().eq(map.values()));
            }
        }
    }
}
