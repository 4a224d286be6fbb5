//! Losses that wait for their step.
//!
//! The Hugging Face trainer erases its bar, prints the losses, and draws the bar again. The step of
//! the losses is therefore in the following frame. If the bar goes to another stream or out of
//! order, an impossible step is not used.

use paceline_lines::observation::{Observation, Phase};

/// The losses that wait for a step.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: Option<Observation>,
    /// Whether there is a bar.
    has_bar: bool,
    /// A step and its epoch, to check later ones.
    known: Option<(f64, f64)>,
    /// The step and the latency of the last frame that has moved.
    last: Option<(u64, Option<f64>)>,
    /// Frames are not redrawn after losses, as far as the epochs show.
    is_of_last: bool,
    /// The last frame, if the losses that were reported in its place belong to the one before.
    behind: Option<Observation>,
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
        let last = found.step.and_then(|step| self.last.replace((step, found.batch_seconds)));
        let Some(waiting) = self.waiting.take() else { return moved };
        if let Some((step, seconds)) = last
            && self.is_of_last(step, found, &waiting)
        {
            let total_steps = found.total_steps;
            let waiting =
                Observation { step: Some(step), total_steps, batch_seconds: seconds, ..waiting };
            self.behind = Some(std::mem::replace(found, waiting));
            return true;
        }
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

    /// The last frame, if it is to be reported after the losses of the one before.
    pub(super) fn behind(&mut self) -> Option<Observation> {
        self.behind.take()
    }

    /// Returns the losses whose step has not come.
    pub(super) fn flush(&mut self) -> Option<Observation> {
        self.waiting.take()
    }

    /// Whether losses are those of the frame before them, whose step is `last`: in a log without redrawn
    /// frames. The number of epochs is then a whole one, and with the step of the next frame it is not.
    /// Where both fit, it is as before.
    fn is_of_last(&mut self, last: u64, next: &Observation, losses: &Observation) -> bool {
        let (Some(step), Some(total), Some(epoch)) = (next.step, next.total_steps, losses.epoch)
        else {
            return false;
        };
        let is_slow = next.batch_seconds.is_some_and(|seconds| seconds >= SLOW);
        if !is_slow || next.step_in_epoch || last == 0 || step != last + 1 {
            return false;
        }
        let count = |count: u64| u32::try_from(count).ok().map(f64::from);
        let is_whole = |step: u64| {
            let (Some(step), Some(total)) = (count(step), count(total)) else { return false };
            let epochs = epoch * total / step;
            // The epoch is printed with two digits at least.
            epoch > 0.0 && (epochs - epochs.round()).abs() <= 0.005 * total / step
        };
        let (of_last, of_next) = (is_whole(last), is_whole(step));
        if of_last != of_next {
            self.is_of_last = of_last;
        }
        self.is_of_last && of_last
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

/// The shortest time of a step in seconds for which the bar is drawn after each step.
const SLOW: f64 = 1.0;

#[cfg(test)]
mod tests {
    use paceline_lines::observation::{Loss, Span};

    use super::*;

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
    fn losses_take_the_last_step_if_only_its_epoch_fits() {
        let read = |seconds, steps: [u64; 2], epoch| {
            let timed = |step| Observation { batch_seconds: Some(seconds), ..bar(step) };
            let held = &mut Held::default();
            let [before, after] = steps;
            held.bar(&mut timed(before), true);
            assert_eq!(losses(held, epoch), None);
            let mut found = timed(after);
            assert!(held.bar(&mut found, true));
            let behind = held.behind().map(|frame| frame.step == Some(after));
            assert_eq!((found.epoch, held.behind()), (Some(epoch), None));
            (found.step, behind)
        };
        assert_eq!(read(2.0, [12, 13], 0.25), (Some(12), Some(true)));
        // The frame before was drawn before the step.
        assert_eq!(read(2.0, [12, 13], 0.27), (Some(13), None));
        assert_eq!(read(2.0, [12, 14], 0.25), (Some(14), None));
        // Not every step is drawn.
        assert_eq!(read(0.1, [12, 13], 0.25), (Some(13), None));
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
