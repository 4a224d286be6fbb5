//! What lies between two calls of Burn: a running batch, an evaluation.

use std::time::{Duration, Instant};

use paceline_reporter::{Evaluation, Reporter};

/// What the training does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// It begins a batch.
    Train,
    /// It ends a batch, with its loss if that is known, and begins the next.
    Next(Option<f64>),
    /// It looks at held-out data.
    Evaluate,
    /// Neither: what began and has not ended does not count.
    Rest,
}

/// Tells a reporter how the time of a training is divided.
#[derive(Debug)]
pub(crate) struct Narrator {
    reporter: Reporter,
    phase: Phase,
}

/// What the training is at.
#[derive(Debug)]
enum Phase {
    Resting,
    /// A batch that began then.
    Training(Instant),
    Evaluating(#[expect(dead_code, reason = "it is held to be dropped")] Evaluation),
}

impl Narrator {
    pub(crate) fn new(reporter: Reporter) -> Self {
        Self { reporter, phase: Phase::Resting }
    }

    /// Takes a turn; it has been reported when this returns.
    pub(crate) fn turn(&mut self, turn: Turn) {
        if let (&Phase::Training(began), Turn::Next(loss)) = (&self.phase, turn) {
            let took: Duration = began.elapsed();
            self.reporter.record(loss, Some(took));
        }
        // An evaluation that ends says so when it is dropped: before the next one begins.
        self.phase = Phase::Resting;
        self.phase = match turn {
            Turn::Train | Turn::Next(_) => Phase::Training(now()),
            Turn::Evaluate => Phase::Evaluating(self.reporter.evaluating()),
            Turn::Rest => Phase::Resting,
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "a batch is timed from here on")]
fn now() -> Instant {
    Instant::now()
}
