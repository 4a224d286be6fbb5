use crate::unit::JobId;

/// Something of each job, by id: as large as there are jobs, and cheap to copy whole, which the
/// limiter does for every moment that it judges.
#[derive(Clone, Debug)]
pub(super) struct Roster<T>(Vec<(JobId, T)>);

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Roster<T> {
    pub(super) fn get(&self, job: &JobId) -> Option<&T> {
        let at = self.find(job).ok()?;
        self.0.get(at).map(|(_, of)| of)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, of)| of)
    }

    pub(super) fn remove(&mut self, job: &JobId) {
        if let Ok(at) = self.find(job) {
            self.0.remove(at);
        }
    }

    fn find(&self, job: &JobId) -> Result<usize, usize> {
        self.0.binary_search_by(|(id, _)| id.cmp(job))
    }
}

impl<T> FromIterator<(JobId, T)> for Roster<T> {
    /// In any order; of a job that comes twice, the last counts.
    fn from_iter<I: IntoIterator<Item = (JobId, T)>>(all: I) -> Self {
        let mut all: Vec<(JobId, T)> = all.into_iter().collect();
        if !all.is_sorted_by(|(a, _), (b, _)| a < b) {
            all.reverse();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all.dedup_by(|(a, _), (b, _)| a == b);
        }
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_roster_is_a_map(all in prop::collection::vec(("[a-d]", 0..9_u32), 0..12)) {
            let all: Vec<(JobId, u32)> =
                all.into_iter().map(|(id, of)| (JobId::new(id).unwrap(), of)).collect();
            let mut map: BTreeMap<JobId, u32> = all.iter().cloned().collect();
            let mut roster: Roster<u32> = all.into_iter().collect();
            let b = JobId::new("b").unwrap();
            prop_assert_eq!(roster.get(&b), map.get(&b));
            prop_assert!(roster.values().eq(map.values()));
            map.remove(&b);
            roster.remove(&b);
            prop_assert!(roster.values().eq(map.values()));
        }
    }
}
