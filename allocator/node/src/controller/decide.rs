//! Runs the decision engine and executes its effects.

use paceline_policy::limiter::Change;
use paceline_policy::{Effect, Event, JobId, Moment};

use super::Controller;
use crate::migration::mover::MigrationHost;

impl Controller {
    /// Gives the decision engine an event that has no effects.
    pub(super) fn apply_event(&mut self, event: Event) {
        let effects = self.engine.step(self.clock.now(), event);
        debug_assert!(effects.is_empty(), "only a sample and a decision have effects");
    }

    /// Runs the decision engine and executes all its effects.
    pub(super) fn step(&mut self, event: Event) {
        self.step_but(event, None);
    }

    /// The same, but returns the change of one job's limit instead of writing it.
    pub(super) fn step_but(&mut self, event: Event, job: Option<&JobId>) -> Option<Change> {
        let now = self.clock.now();
        let effects = self.engine.step(now, event);
        let changes = self.execute(now, effects);
        let (own, others): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|change| Some(&change.job) == job);
        self.apply(others);
        own.into_iter().next()
    }

    /// Executes the effects and returns the changes of limits. These are written after all other
    /// effects, because a job that is ended gets no limit.
    fn execute(&mut self, now: Moment, effects: Vec<Effect>) -> Vec<Change> {
        let mut changes = Vec::new();
        for effect in effects {
            match effect {
                Effect::Decided(decided) => {
                    let moves = decided.1.migrate.clone();
                    self.recorder.decided(&decided.0, decided.1);
                    self.migrate(&moves);
                }
                Effect::Set(set) => changes = set,
                Effect::End(done) => done.iter().for_each(|job| self.end(job)),
                Effect::WakeAt(moment) => self.timetable.wakes(now, moment),
            }
        }
        changes
    }
}
