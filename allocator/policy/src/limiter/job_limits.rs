use super::clamp::Clamp;
use super::guards::Guards;

/// One job's evaluations before the current moment, and now. Both are stored in one place, so that
/// advancing to the next moment copies nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobLimits {
    pub(super) before: Option<Evaluation>,
    pub(super) now: Option<Evaluation>,
    /// The call that evaluated it last.
    round: u64,
}

/// One job as of the last decision and the last tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluation {
    pub(super) clamp: Clamp,
    pub(super) guards: Guards,
}

impl JobLimits {
    /// Advances to the next moment.
    pub(super) fn advance(&mut self) {
        self.before = self.now;
    }

    pub(super) fn store(&mut self, round: u64, evaluation: Evaluation) {
        (self.now, self.round) = (Some(evaluation), round);
    }

    /// Ends a call: a job that it did not evaluate loses its current evaluation. Returns whether the job
    /// still has any evaluation.
    pub(super) fn end(&mut self, round: u64) -> bool {
        if self.round != round {
            self.now = None;
        }
        self.now.is_some() || self.before.is_some()
    }
}
