//! Several observations of one source under one lock.

use std::sync::MutexGuard;
use std::time::Duration;

use paceline_lines::observation::Observation;
use paceline_reporter::Reporter;

use super::{Job, State};
use crate::merger::{Entry, SourceId};

/// When something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Just now.
    New,
    /// Some time before it was read.
    Old,
    /// Before the state of an earlier sidecar was saved, which has reported it.
    Reported,
}

/// Maximum number of losses per report to the reporter.
const MAX_LOSSES: usize = 64;

/// A lock on the job for several observations of one source, such as the lines of one read.
///
/// Common work is done once. The job is locked and the clock is read at the start; losses are
/// reported together; the last step is reported at the end. Until it is dropped, any other use of
/// the job deadlocks in this thread and waits in others.
#[derive(Debug)]
pub struct SourceLock<'j> {
    state: MutexGuard<'j, State>,
    source: SourceId,
    age: Age,
    now: f64,
    observations: u64,
    pending: Pending,
}

/// Values that are not reported yet.
#[derive(Debug)]
struct Pending {
    losses: [f64; MAX_LOSSES],
    count: usize,
    step: Option<u64>,
}

impl<'j> SourceLock<'j> {
    pub(super) fn new(job: &'j Job, source: SourceId, age: Age) -> Self {
        let pending = Pending { losses: [0.0; MAX_LOSSES], count: 0, step: None };
        let now = job.clock().unix();
        Self { state: job.state(), source, age, now, observations: 0, pending }
    }

    /// Takes one observation.
    pub fn take(&mut self, observation: &Observation) {
        let Self { state, source, age, now, observations, pending } = self;
        let State { merger, reporter, .. } = &mut **state;
        if *age == Age::Reported {
            merger.take(*source, observation, None, |_| {});
            return;
        }
        *observations += 1;
        if let Some(reporter) = reporter {
            let now = (*age == Age::New).then_some(*now);
            merger.take(*source, observation, now, |entry| pending.enter(entry, reporter));
        }
    }
}

impl Drop for SourceLock<'_> {
    fn drop(&mut self) {
        if let Some(reporter) = &self.state.reporter {
            self.pending.report(reporter);
        }
        if self.observations > 0
            && let Some(known) = self.state.sources.get_mut(&self.source)
        {
            known.observations += self.observations;
            known.updated_at = Some(self.now);
        }
    }
}

impl Pending {
    fn enter(&mut self, entry: Entry, reporter: &Reporter) {
        match entry {
            Entry::Loss(loss) => {
                // Not once the last place is filled: the step of that loss is not known yet.
                if self.count == MAX_LOSSES {
                    self.report(reporter);
                }
                if let Some(place) = self.losses.get_mut(self.count) {
                    *place = loss;
                    self.count += 1;
                }
                // A loss alone counts as a step.
                self.step = self.step.map(|step| step.saturating_add(1));
            }
            Entry::Validation(loss) => reporter.validation(loss),
            Entry::Batch(seconds) => {
                reporter.record(None, Duration::try_from_secs_f64(seconds).ok());
            }
            Entry::Step(step) => self.step = Some(step),
            Entry::Epoch(epoch) => reporter.epoch(epoch),
            Entry::TotalSteps(steps) => reporter.total_steps(steps.unwrap_or(0)),
            Entry::ExpectedSteps(steps) => reporter.expected_steps(steps),
        }
    }

    fn report(&mut self, reporter: &Reporter) {
        let losses = self.losses.get(..self.count).unwrap_or_default();
        match self.step {
            Some(step) => reporter.report_until(step, losses),
            None if losses.is_empty() => {}
            None => reporter.report_all(losses),
        }
        self.count = 0;
    }
}
