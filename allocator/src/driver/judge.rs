//! What the engine is told, and what it says.

use paceline_policy::limiter::Change;
use paceline_policy::{Decision, Effect, Event, Frame};

use super::publish::Decided;
use super::{Driver, SOON};
use crate::audit::Entry;
use crate::clock::unix_seconds;
use crate::live::snapshot::DecisionView;
use crate::migrate::mover::Mover;

impl Driver {
    pub(super) fn tell(&mut self, event: Event) {
        let effects = self.engine.step(self.clock.now(), event);
        debug_assert!(effects.is_empty(), "only a look and a decision have effects");
    }

    /// Lets the engine judge, and does what it says but for the changes of limits, which are
    /// returned.
    pub(super) fn judge(&mut self, event: Event) -> Vec<Change> {
        let mut changes = Vec::new();
        let now = self.clock.now();
        for effect in self.engine.step(now, event) {
            match effect {
                Effect::Decided(decided) => self.record(&decided.0, decided.1),
                Effect::Set(set) => changes = set,
                Effect::End(done) => done.iter().for_each(|job| self.end(job)),
                Effect::WakeAt(moment) => {
                    (self.wake_at, self.asking) = (Some(moment), None);
                    let seconds = moment.seconds_since(now);
                    self.halfway_at = (seconds < SOON).then(|| now.after(seconds / 2.0));
                }
            }
        }
        changes
    }

    fn record(&mut self, frame: &Frame, decision: Decision) {
        if let Some(frames) = &mut self.records.frames {
            frames.write(frame);
        }
        for shadow in &mut self.shadows {
            shadow.watch(frame, &decision);
        }
        let number = self.decided.as_ref().map_or(0, |decided| decided.view.number) + 1;
        for (job, of) in &decision.jobs {
            let limit = decision.limits.get(job).map(ToString::to_string).unwrap_or_default();
            tracing::debug!(%job, class = of.class, limit, why = %of.why, "decided");
        }
        if let Some(audit) = &mut self.records.audit {
            Entry::of_decision(number, &decision).for_each(|entry| audit.write(&entry));
        }
        self.migrate(&decision.migrate);
        let view = DecisionView { number, at: unix_seconds(), interval: decision.interval };
        self.decided = Some(Decided { view, decision });
    }
}
