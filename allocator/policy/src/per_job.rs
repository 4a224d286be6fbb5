//! A map by job that is quick to make and to go through.

use std::cmp::Ordering;
use std::mem;
use std::ops::Index;
use std::slice::Iter;
use std::vec::IntoIter;

use serde::{Serialize, Serializer};

use crate::unit::JobId;

/// Something of each job, by id, side by side in memory: as large as there are jobs, and quick to
/// go through, which every run of a policy does several times. To come or to go moves those behind,
/// but each comes and goes once, and is gone through many times.
#[derive(Clone, Debug, PartialEq)]
pub struct PerJob<T>(Vec<(JobId, T)>);

impl<T> Default for PerJob<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerJob<T> {
    /// Of no job.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Of how many jobs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is of none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This job's.
    pub fn get(&self, job: &JobId) -> Option<&T> {
        let at = self.find(job).ok()?;
        self.0.get(at).map(|(_, of)| of)
    }

    /// This job's, to be changed.
    pub fn get_mut(&mut self, job: &JobId) -> Option<&mut T> {
        let at = self.find(job).ok()?;
        self.0.get_mut(at).map(|(_, of)| of)
    }

    /// Whether there is anything of this job.
    pub fn contains_key(&self, job: &JobId) -> bool {
        self.find(job).is_ok()
    }

    /// All jobs with what is theirs, in the order of their ids.
    pub fn iter(&self) -> Entries<'_, T> {
        self.into_iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&JobId, &mut T)> {
        self.0.iter_mut().map(|(job, of)| (&*job, of))
    }

    /// The jobs, in order.
    pub fn keys(&self) -> impl Iterator<Item = &JobId> {
        self.0.iter().map(|(job, _)| job)
    }

    /// What is theirs, in the order of their ids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, of)| of)
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, of)| of)
    }

    /// What was there of this job is dropped.
    pub fn insert(&mut self, job: JobId, of: T) {
        match self.find(&job) {
            Ok(at) => {
                if let Some(there) = self.0.get_mut(at) {
                    *there = (job, of);
                }
            }
            Err(at) => self.0.insert(at, (job, of)),
        }
    }

    /// This job's, which is the default if there was none.
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

    /// Only what this holds of stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(|(_, of)| keep(of));
    }

    /// There is nothing of this job any more.
    pub fn remove(&mut self, job: &JobId) {
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

/// Of a job that comes twice, the last one counts.
impl<T> FromIterator<(JobId, T)> for PerJob<T> {
    fn from_iter<I: IntoIterator<Item = (JobId, T)>>(all: I) -> Self {
        let mut all = Vec::from_iter(all);
        if !all.is_sorted_by(|(a, _), (b, _)| a < b) {
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all.dedup_by(|later, kept| {
                let again = later.0 == kept.0;
                if again {
                    mem::swap(later, kept);
                }
                again
            });
        }
        Self(all)
    }
}

/// All jobs with what is theirs, in the order of their ids.
#[derive(Clone, Debug)]
pub struct Entries<'a, T>(Iter<'a, (JobId, T)>);

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a JobId, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(job, of)| (job, of))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a, T> IntoIterator for &'a PerJob<T> {
    type Item = (&'a JobId, &'a T);
    type IntoIter = Entries<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        Entries(self.0.iter())
    }
}

impl<T> IntoIterator for PerJob<T> {
    type Item = (JobId, T);
    type IntoIter = IntoIter<(JobId, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// # Panics
///
/// If there is nothing of the job.
impl<T> Index<&JobId> for PerJob<T> {
    type Output = T;

    fn index(&self, job: &JobId) -> &T {
        self.get(job).expect("something of the job that is asked for")
    }
}

/// An object with a field for each job.
impl<T: Serialize> Serialize for PerJob<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Steps = Vec<(JobId, Option<u32>)>;

    fn steps() -> impl Strategy<Value = Steps> {
        let job = "[a-e]".prop_map(|name| JobId::new(name).unwrap());
        prop::collection::vec((job, prop::option::of(0..9_u32)), 0..24)
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in steps()) {
            let (mut map, mut per_job) = (BTreeMap::new(), PerJob::new());
            for (job, of) in steps {
                prop_assert_eq!(per_job.get(&job), map.get(&job));
                prop_assert_eq!(per_job.get_mut(&job), map.get_mut(&job));
                prop_assert_eq!(per_job.contains_key(&job), map.contains_key(&job));
                if let Some(of) = of {
                    map.insert(job.clone(), of);
                    per_job.insert(job.clone(), of);
                } else {
                    map.remove(&job);
                    per_job.remove(&job);
                }
                prop_assert_eq!((per_job.len(), per_job.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(per_job.values().eq(map.values()) && per_job.keys().eq(map.keys()));
                prop_assert!(per_job.iter_mut().eq(map.iter_mut()));
                *per_job.get_or_default(&job) += 1;
                *map.entry(job).or_default() += 1;
                per_job.retain(|of| *of != 3);
                map.retain(|_, of| *of != 3);
                prop_assert!(per_job.iter().eq(map.iter()));
            }
            prop_assert!(per_job.into_iter().eq(map));
        }

        #[test]
        fn it_is_made_and_written_like_a_map(steps in steps()) {
            let all = || steps.iter().cloned();
            let (map, per_job): (BTreeMap<_, _>, PerJob<_>) = (all().collect(), all().collect());
            prop_assert!(per_job.iter().eq(map.iter()));
            let written = serde_json::to_string(&per_job).unwrap();
            prop_assert_eq!(written, serde_json::to_string(&map).unwrap());
        }
    }
}
