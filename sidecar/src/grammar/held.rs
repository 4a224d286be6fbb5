//! Losses that wait for their step.
//!
//! The Hugging Face trainer erases its bar, prints the losses, and draws the bar again. The step of
//! the losses is therefore in the following frame. If the bar goes to another stream or out of
//! order, an impossible step is not used.

use crate::observation::{Observation, Phase};

/// The losses that wait for a step.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: Option<Observation>,
    /// Whether there is a bar.
    has_bar: bool,
    /// A step and its epoch, to check later ones.
    known: Option<(f64, f64)>,
}

impl Held {
    /// Whether a bar counts the steps.
    pub(super) fn has_bar(&self) -> bool {
        self.has_bar
    }

    /// Takes losses without a step. Returns whether to report `found` now. It may then hold earlier
    /// losses whose step never came.
    pub(super) fn losses(&mut self, found: &mut Observation) -> bool {
        if !self.has_bar {
            return true;
        }
        let before = self.waiting.replace(std::mem::take(found));
        before.map(|before| *found = before).is_some()
    }

    /// Takes a frame of the bar that counts the steps; `moved`: its counter has advanced. Returns
    /// whether to report `found`. It then holds the frame, or the losses that waited for it.
    pub(super) fn bar(&mut self, found: &mut Observation, moved: bool) -> bool {
        self.has_bar = true;
        let Some(waiting) = self.waiting.take() else { return moved };
        let fits = self.fits(found, &waiting);
        let bar = std::mem::replace(found, waiting);
        if fits {
            found.step = bar.step;
            found.step_in_epoch = bar.step_in_epoch;
            found.total_steps = bar.total_steps;
            // After an evaluation, a bar that has not moved repeats its earlier latency.
            let evaluated = found.losses.iter().any(|loss| loss.phase != Phase::Train);
            found.batch_seconds = bar.batch_seconds.filter(|_| moved || !evaluated);
        }
        true
    }

    /// Returns the losses whose step has not come.
    pub(super) fn flush(&mut self) -> Option<Observation> {
        self.waiting.take()
    }

    /// Whether the step has grown in proportion to the epoch.
    fn fits(&mut self, bar: &Observation, losses: &Observation) -> bool {
        let step = bar.step.and_then(|step| u32::try_from(step).ok()).map(f64::from);
        let (Some(step), Some(epoch)) = (step, losses.epoch) else { return true };
        if let Some((known_step, known_epoch)) = self.known
            && known_epoch > 0.0
        {
            // The epoch is printed with four digits.
            return (step - known_step * epoch / known_epoch).abs() <= 1.0 + 0.01 * step;
        }
        if step > 0.0 {
            self.known = Some((step, epoch));
        }
        step > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Loss, Span};

    fn dict(epoch: f64) -> Observation {
        Observation { epoch: Some(epoch), ..Observation::default() }
    }

    fn bar(step: u64) -> Observation {
        Observation { step: Some(step), total_steps: Some(48), ..Observation::default() }
    }

    fn losses(held: &mut Held, epoch: f64) -> Option<Observation> {
        let mut found = dict(epoch);
        held.losses(&mut found).then_some(found)
    }

    fn frame(held: &mut Held, step: u64, moved: bool) -> Option<Observation> {
        let mut found = bar(step);
        held.bar(&mut found, moved).then_some(found)
    }

    #[test]
    fn losses_take_the_step_of_the_next_frame() {
        let held = &mut Held::default();
        assert_eq!(frame(held, 0, true), Some(bar(0)));
        assert_eq!(losses(held, 0.3125), None);
        let found = frame(held, 5, true).unwrap();
        assert_eq!((found.epoch, found.step, found.total_steps), (Some(0.3125), Some(5), Some(48)));
        assert_eq!(frame(held, 5, false), None);
        // The second has waited for longer than there are frames.
        assert_eq!(losses(held, 0.625), None);
        assert_eq!(losses(held, 0.9375), Some(dict(0.625)));
        assert_eq!(frame(held, 15, true).unwrap().step, Some(15));
        // A frame of another time.
        assert_eq!(losses(held, 1.25), None);
        assert_eq!(frame(held, 40, true), Some(dict(1.25)));
        assert_eq!(losses(held, 3.0), None);
        assert_eq!((held.flush(), held.flush()), (Some(dict(3.0)), None));
    }

    #[test]
    fn latency_is_not_repeated_after_an_evaluation() {
        let read = |phase, moved| {
            let mut held = Held { has_bar: true, ..Held::default() };
            let loss = Loss { name: "loss".to_owned(), phase, span: Span::Epoch, value: 0.5 };
            held.losses(&mut Observation { losses: vec![loss], ..dict(1.0) });
            let mut found = Observation { batch_seconds: Some(0.1), ..bar(12) };
            assert!(held.bar(&mut found, moved));
            (found.step, found.batch_seconds)
        };
        assert_eq!(read(Phase::Validation, false), (Some(12), None));
        assert_eq!(read(Phase::Validation, true), (Some(12), Some(0.1)));
        assert_eq!(read(Phase::Train, false), (Some(12), Some(0.1)));
    }

    #[test]
    fn without_a_bar_nothing_waits() {
        assert_eq!(losses(&mut Held::default(), 1.0), Some(dict(1.0)));
    }
}
