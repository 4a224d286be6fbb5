//! The jobs of a run by number. Full state is kept only of the jobs present, so the memory that an
//! event touches does not grow with past and future jobs.

use std::sync::Arc;

use super::live::LiveJob;
use crate::fluid::Index;
use crate::outcome::JobOutcome;
use crate::scenario::Job;

#[derive(Debug)]
pub(super) struct Jobs {
    seed: u64,
    /// Those that have not arrived.
    future: Vec<Option<Job>>,
    /// The jobs present, contiguous in no order, and the position of each.
    present: Vec<(Index, LiveJob)>,
    places: Vec<Option<usize>>,
    /// The outcomes of finished jobs.
    finished: Vec<(Index, JobOutcome)>,
}

impl Jobs {
    /// A run in which none of these has arrived.
    pub(super) fn new(workload: Vec<Job>, seed: u64) -> Self {
        let places = vec![None; workload.len()];
        let future = workload.into_iter().map(Some).collect();
        Self { seed, future, present: Vec::new(), places, finished: Vec::new() }
    }

    /// Adds an arriving job.
    pub(super) fn arrive(&mut self, index: Index) {
        let job = self.future.get_mut(index).and_then(Option::take);
        let (Some(job), Some(place)) = (job, self.places.get_mut(index)) else { return };
        *place = Some(self.present.len());
        self.present.push((index, LiveJob::new(job, index, self.seed)));
    }

    /// Removes a finished job, and keeps its outcome.
    pub(super) fn finish(&mut self, index: Index) {
        let Some(place) = self.places.get_mut(index).and_then(Option::take) else { return };
        let (_, live) = self.present.swap_remove(place);
        // The last job is there now, unless it was the one removed.
        let moved = self.present.get(place).map(|(moved, _)| *moved);
        if let Some(moved) = moved.and_then(|moved| self.places.get_mut(moved)) {
            *moved = Some(place);
        }
        self.finished.push((index, live.outcome));
    }

    /// A job that is present.
    pub(super) fn get(&self, index: Index) -> Option<&LiveJob> {
        let place = (*self.places.get(index)?)?;
        self.present.get(place).map(|(_, live)| live)
    }

    pub(super) fn get_mut(&mut self, index: Index) -> Option<&mut LiveJob> {
        let place = (*self.places.get(index)?)?;
        self.present.get_mut(place).map(|(_, live)| live)
    }

    /// The jobs present.
    pub(super) fn present(&mut self) -> impl Iterator<Item = &mut LiveJob> {
        self.present.iter_mut().map(|(_, live)| live)
    }

    /// The outcomes of all jobs.
    pub(super) fn outcomes(self) -> Vec<JobOutcome> {
        let future = self.future.into_iter().enumerate();
        let future = future.filter_map(|(index, job)| Some((index, JobOutcome::new(&job?))));
        let here = self.present.into_iter().map(|(index, live)| (index, live.outcome));
        let mut all: Vec<(Index, JobOutcome)> =
            self.finished.into_iter().chain(here).chain(future).collect();
        all.sort_unstable_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// The names of processes, by how many processes their job had before. All jobs share them, so that
/// copying a report touches no memory of its job.
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
        fn jobs_are_found_and_kept_after_others_come_and_go(
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
                jobs.finish(*index);
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
