//! What happens between two calls of Burn: a batch or an evaluation.

use std::time::{Duration, Instant};

use paceline_reporter::{Evaluation, Reporter};

/// What the training does from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transition {
    /// It begins a batch.
    Train,
    /// It ends a batch, with its loss if that is known, and begins the next.
    Next(Option<f64>),
    /// It evaluates held-out data.
    Evaluate,
    /// Neither: a batch that has not ended does not count.
    Rest,
}

/// Reports batches and evaluations of a training.
#[derive(Debug)]
pub(crate) struct PhaseTracker {
    reporter: Reporter,
    phase: Phase,
}

/// The current phase of the training.
#[derive(Debug)]
enum Phase {
    Resting,
    /// A batch that began then.
    Training(Instant),
    Evaluating(#[expect(dead_code, reason = "it is held to be dropped")] Evaluation),
}

impl PhaseTracker {
    pub(crate) fn new(reporter: Reporter) -> Self {
        Self { reporter, phase: Phase::Resting }
    }

    /// Ends the current phase and begins the next; both have been reported when this returns.
    pub(crate) fn enter(&mut self, transition: Transition) {
        if let (&Phase::Training(began), Transition::Next(loss)) = (&self.phase, transition) {
            let took: Duration = began.elapsed();
            self.reporter.record(loss, Some(took));
        }
        // Dropping an evaluation reports its end. That must happen before the next one begins.
        self.phase = Phase::Resting;
        self.phase = match transition {
            Transition::Train | Transition::Next(_) => Phase::Training(now()),
            Transition::Evaluate => Phase::Evaluating(self.reporter.evaluating()),
            Transition::Rest => Phase::Resting,
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "a batch is timed from here on")]
fn now() -> Instant {
    Instant::now()
}
