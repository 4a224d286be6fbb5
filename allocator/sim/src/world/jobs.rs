//! The jobs of a run by number: all that happens to them is kept of those that are there alone, so
//! that an event touches no more memory however many have been or are to come.

use std::sync::Arc;

use super::live::Live;
use crate::fluid::Index;
use crate::outcome::JobOutcome;
use crate::scenario::Job;

#[derive(Debug)]
pub(super) struct Jobs {
    seed: u64,
    /// Those that have not arrived.
    coming: Vec<Option<Job>>,
    /// Those that are there, side by side in no order, and where each stands.
    here: Vec<(Index, Live)>,
    places: Vec<Option<usize>>,
    /// What came of those that are over.
    over: Vec<(Index, JobOutcome)>,
}

impl Jobs {
    /// None of these has arrived.
    pub(super) fn new(workload: Vec<Job>, seed: u64) -> Self {
        let places = vec![None; workload.len()];
        let coming = workload.into_iter().map(Some).collect();
        Self { seed, coming, here: Vec::new(), places, over: Vec::new() }
    }

    /// A job arrives.
    pub(super) fn arrive(&mut self, index: Index) {
        let job = self.coming.get_mut(index).and_then(Option::take);
        let (Some(job), Some(place)) = (job, self.places.get_mut(index)) else { return };
        *place = Some(self.here.len());
        self.here.push((index, Live::new(job, index, self.seed)));
    }

    /// A job is over.
    pub(super) fn over(&mut self, index: Index) {
        let Some(place) = self.places.get_mut(index).and_then(Option::take) else { return };
        let (_, live) = self.here.swap_remove(place);
        // The last one stands there now, unless it was the last that went.
        let moved = self.here.get(place).map(|(moved, _)| *moved);
        if let Some(moved) = moved.and_then(|moved| self.places.get_mut(moved)) {
            *moved = Some(place);
        }
        self.over.push((index, live.outcome));
    }

    /// A job that is there.
    pub(super) fn get(&self, index: Index) -> Option<&Live> {
        let place = (*self.places.get(index)?)?;
        self.here.get(place).map(|(_, live)| live)
    }

    pub(super) fn get_mut(&mut self, index: Index) -> Option<&mut Live> {
        let place = (*self.places.get(index)?)?;
        self.here.get_mut(place).map(|(_, live)| live)
    }

    /// Those that are there.
    pub(super) fn here(&mut self) -> impl Iterator<Item = &mut Live> {
        self.here.iter_mut().map(|(_, live)| live)
    }

    /// What came of all of them.
    pub(super) fn outcomes(self) -> Vec<JobOutcome> {
        let coming = self.coming.into_iter().enumerate();
        let coming = coming.filter_map(|(index, job)| Some((index, JobOutcome::new(&job?))));
        let here = self.here.into_iter().map(|(index, live)| (index, live.outcome));
        let mut all: Vec<(Index, JobOutcome)> =
            self.over.into_iter().chain(here).chain(coming).collect();
        all.sort_unstable_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// The names of processes, by how many of its job there were before. All jobs share them: reports
/// carry them to and fro, and are not to touch a piece of memory of each job's for that.
#[derive(Debug, Default)]
pub(super) struct Instances(Vec<Arc<str>>);

impl Instances {
    pub(super) fn name(&mut self, before: usize) -> Arc<str> {
        while self.0.len() <= before {
            self.0.push(Arc::from(self.0.len().to_string()));
        }
        self.0.get(before).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::scenario;

    fn order() -> impl Strategy<Value = Vec<Index>> {
        Just((0..5).collect::<Vec<Index>>()).prop_shuffle()
    }

    proptest! {
        #[test]
        fn whoever_comes_and_goes_the_others_are_found_and_none_is_lost(
            arrivals in order(), ends in order(), came in 0..=5_usize, went in 0..=5_usize,
        ) {
            let workload = scenario("FC-5").draw(1);
            let mut jobs = Jobs::new(workload.clone(), 1);
            let arrived = &arrivals[..came];
            for index in arrived {
                jobs.arrive(*index);
            }
            let over: Vec<Index> =
                ends.into_iter().filter(|index| arrived.contains(index)).take(went).collect();
            for index in &over {
                jobs.over(*index);
            }
            for (index, job) in workload.iter().enumerate() {
                let is_here = arrived.contains(&index) && !over.contains(&index);
                let found = jobs.get_mut(index).map(|live| live.job.id.clone());
                prop_assert_eq!(&found, &is_here.then(|| job.id.clone()));
                prop_assert_eq!(jobs.get(index).map(|live| &live.job.id), found.as_ref());
            }
            let outcomes = jobs.outcomes();
            let names = workload.iter().map(|job| job.id.as_str());
            prop_assert!(outcomes.iter().map(|outcome| outcome.id.as_str()).eq(names));
        }
    }
}
