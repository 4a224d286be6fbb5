//! A map by job that is fast to build and to iterate over.

use std::cmp::Ordering;
use std::mem;
use std::ops::Index;
use std::slice::Iter;
use std::vec::IntoIter;

use serde::{Serialize, Serializer};

use crate::unit::JobId;

/// A sorted vector of values by job id. Every run of a policy iterates over it several times, while
/// each job is inserted and removed only once. So iteration is fast, and insertion may move entries.
#[derive(Clone, Debug, PartialEq)]
pub struct PerJob<T>(Vec<(JobId, T)>);

impl<T> Default for PerJob<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerJob<T> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A map of entries that are in the order of their ids, each id once.
    pub(crate) fn from_sorted(all: Vec<(JobId, T)>) -> Self {
        debug_assert!(all.is_sorted_by(|(a, _), (b, _)| a < b), "the ids are in order");
        Self(all)
    }

    /// The number of jobs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no jobs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a job.
    pub fn get(&self, job: &JobId) -> Option<&T> {
        let at = self.find(job).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The value of a job, mutable.
    pub fn get_mut(&mut self, job: &JobId) -> Option<&mut T> {
        let at = self.find(job).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Whether there is a value of this job.
    pub fn contains_key(&self, job: &JobId) -> bool {
        self.find(job).is_ok()
    }

    /// All jobs with their values, in the order of their ids.
    pub fn iter(&self) -> Entries<'_, T> {
        self.into_iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&JobId, &mut T)> {
        self.0.iter_mut().map(|(job, value)| (&*job, value))
    }

    /// The jobs, in the order of their ids.
    pub fn keys(&self) -> impl Iterator<Item = &JobId> {
        self.0.iter().map(|(job, _)| job)
    }

    /// The values, in the order of the jobs' ids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Sets the value of a job; an old value is dropped.
    pub fn insert(&mut self, job: JobId, value: T) {
        match self.find(&job) {
            Ok(at) => {
                if let Some(there) = self.0.get_mut(at) {
                    *there = (job, value);
                }
            }
            Err(at) => self.0.insert(at, (job, value)),
        }
    }

    /// The value of a job, inserted as the default if there was none.
    pub(crate) fn get_or_default(&mut self, job: &JobId) -> &mut T
    where
        T: Default,
    {
        let at = self.find(job).unwrap_or_else(|at| {
            self.0.insert(at, (job.clone(), T::default()));
            at
        });
        self.0.get_mut(at).map(|(_, value)| value).expect("the value was inserted above")
    }

    /// Keeps only the values for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(|(_, value)| keep(value));
    }

    /// Removes a job and its value.
    pub fn remove(&mut self, job: &JobId) {
        if let Ok(at) = self.find(job) {
            self.0.remove(at);
        }
    }

    fn find(&self, job: &JobId) -> Result<usize, usize> {
        // Most compared ids share their storage, so comparing the pointers is usually enough.
        let same = |id: &JobId| std::ptr::eq(id.as_str(), job.as_str());
        self.0.binary_search_by(|(id, _)| if same(id) { Ordering::Equal } else { id.cmp(job) })
    }
}

/// Of several values of one job, the last one counts.
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

/// All jobs with their values, in the order of their ids.
#[derive(Clone, Debug)]
pub struct Entries<'a, T>(Iter<'a, (JobId, T)>);

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a JobId, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(job, value)| (job, value))
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
/// If the job has no value.
impl<T> Index<&JobId> for PerJob<T> {
    type Output = T;

    fn index(&self, job: &JobId) -> &T {
        self.get(job).expect("the job has a value")
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
        fn per_job_behaves_like_a_map(steps in steps()) {
            let (mut map, mut per_job) = (BTreeMap::new(), PerJob::new());
            for (job, value) in steps {
                prop_assert_eq!(per_job.get(&job), map.get(&job));
                prop_assert_eq!(per_job.get_mut(&job), map.get_mut(&job));
                prop_assert_eq!(per_job.contains_key(&job), map.contains_key(&job));
                if let Some(value) = value {
                    map.insert(job.clone(), value);
                    per_job.insert(job.clone(), value);
                } else {
                    map.remove(&job);
                    per_job.remove(&job);
                }
                prop_assert_eq!((per_job.len(), per_job.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(per_job.values().eq(map.values()) && per_job.keys().eq(map.keys()));
                prop_assert!(per_job.iter_mut().eq(map.iter_mut()));
                *per_job.get_or_default(&job) += 1;
                *map.entry(job).or_default() += 1;
                per_job.retain(|value| *value != 3);
                map.retain(|_, value| *value != 3);
                prop_assert!(per_job.iter().eq(map.iter()));
            }
            prop_assert!(per_job.into_iter().eq(map));
        }

        #[test]
        fn per_job_collects_and_serializes_like_a_map(steps in steps()) {
            let all = || steps.iter().cloned();
            let (map, per_job): (BTreeMap<_, _>, PerJob<_>) = (all().collect(), all().collect());
            prop_assert!(per_job.iter().eq(map.iter()));
            let written = serde_json::to_string(&per_job).unwrap();
            prop_assert_eq!(written, serde_json::to_string(&map).unwrap());
        }
    }
}
