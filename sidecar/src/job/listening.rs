//! One source that speaks.

use std::sync::MutexGuard;
use std::time::Duration;

use paceline_reporter::Reporter;

use super::{Job, State};
use crate::desk::{Entry, SourceId};
use crate::observation::Observation;

/// So many losses are reported in one go.
const TOGETHER: usize = 64;

/// A source that says several things at one time, such as the lines of one read.
///
/// What is the same for all of them is done once: the job is locked and the clock is read at the
/// start, losses are reported together, and the step that they have come to at the end. Until it is
/// dropped, nobody else may use the job, this thread included.
#[derive(Debug)]
pub struct Listening<'j> {
    state: MutexGuard<'j, State>,
    source: SourceId,
    now: f64,
    observations: u64,
    heard: Heard,
}

/// What is to be reported.
#[derive(Debug)]
struct Heard {
    losses: [f64; TOGETHER],
    count: usize,
    step: Option<u64>,
}

impl<'j> Listening<'j> {
    pub(super) fn new(job: &'j Job, source: SourceId) -> Self {
        let heard = Heard { losses: [0.0; TOGETHER], count: 0, step: None };
        let now = job.clock().unix();
        Self { state: job.state(), source, now, observations: 0, heard }
    }

    /// Takes what it says.
    pub fn take(&mut self, observation: &Observation) {
        let Self { state, source, now, observations, heard } = self;
        let State { desk, reporter, .. } = &mut **state;
        *observations += 1;
        if let Some(reporter) = reporter {
            desk.take(*source, observation, *now, |entry| heard.enter(entry, reporter));
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if let Some(reporter) = &self.state.reporter {
            self.heard.report(reporter);
        }
        if self.observations > 0
            && let Some(known) = self.state.sources.get_mut(&self.source)
        {
            known.observations += self.observations;
            known.updated_at = Some(self.now);
        }
    }
}

impl Heard {
    fn enter(&mut self, entry: Entry, reporter: &Reporter) {
        match entry {
            Entry::Loss(loss) => {
                if let Some(place) = self.losses.get_mut(self.count) {
                    *place = loss;
                    self.count += 1;
                }
                // A loss counts as a step by itself.
                self.step = self.step.map(|step| step.saturating_add(1));
                if self.count == TOGETHER {
                    self.report(reporter);
                }
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
        if self.count > 0 {
            reporter.report_all(self.losses.get(..self.count).unwrap_or_default());
            self.count = 0;
        }
        if let Some(step) = self.step {
            reporter.step(step);
        }
    }
}
