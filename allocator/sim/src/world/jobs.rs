//! The jobs of a run by number: all that happens to them is kept of those that are there alone, so
//! that an event touches no more memory however many have been or are to come.

use super::live::Live;
use crate::fluid::Index;
use crate::outcome::JobOutcome;
use crate::scenario::Job;

#[derive(Debug)]
pub(super) struct Jobs {
    seed: u64,
    all: Vec<Stage>,
}

/// How far a job has come.
#[derive(Debug)]
enum Stage {
    /// It has not arrived.
    Coming(Job),
    /// It is there.
    Here(Box<Live>),
    /// It is over.
    Over(JobOutcome),
}

impl Jobs {
    /// None of these has arrived.
    pub(super) fn new(workload: Vec<Job>, seed: u64) -> Self {
        Self { seed, all: workload.into_iter().map(Stage::Coming).collect() }
    }

    /// A job arrives.
    pub(super) fn arrive(&mut self, index: Index) {
        let seed = self.seed;
        self.turn(index, |stage| match stage {
            Stage::Coming(job) => Stage::Here(Box::new(Live::new(job, index, seed))),
            stage @ (Stage::Here(_) | Stage::Over(_)) => stage,
        });
    }

    /// A job is over.
    pub(super) fn over(&mut self, index: Index) {
        self.turn(index, |stage| match stage {
            Stage::Here(live) => Stage::Over(live.outcome),
            stage @ (Stage::Coming(_) | Stage::Over(_)) => stage,
        });
    }

    fn turn(&mut self, index: Index, to: impl FnOnce(Stage) -> Stage) {
        if let Some(stage) = self.all.get_mut(index) {
            let before = std::mem::replace(stage, Stage::Over(JobOutcome::default()));
            *stage = to(before);
        }
    }

    /// A job that is there.
    pub(super) fn get(&self, index: Index) -> Option<&Live> {
        match self.all.get(index)? {
            Stage::Here(live) => Some(live),
            Stage::Coming(_) | Stage::Over(_) => None,
        }
    }

    pub(super) fn get_mut(&mut self, index: Index) -> Option<&mut Live> {
        match self.all.get_mut(index)? {
            Stage::Here(live) => Some(live),
            Stage::Coming(_) | Stage::Over(_) => None,
        }
    }

    /// What came of all of them.
    pub(super) fn outcomes(self) -> Vec<JobOutcome> {
        let outcome = |stage| match stage {
            Stage::Coming(job) => JobOutcome::new(&job),
            Stage::Here(live) => live.outcome,
            Stage::Over(outcome) => outcome,
        };
        self.all.into_iter().map(outcome).collect()
    }
}
