//! The first part of a loss on a line of its own. Its main loss may follow on another line of the same step.
//! So the part waits for the next loss, or until the source is quiet.

use paceline_lines::names::{PART, rank};
use paceline_lines::observation::{Loss, Observation, Phase, Span};

/// Maximum number of parts that wait.
const MAX_PARTS: usize = 16;

/// The first training loss of a program.
#[derive(Debug, Default)]
pub(super) enum FirstPart {
    #[default]
    Unknown,
    /// These parts wait.
    Waits(Box<Observation>),
    /// Whether a main loss comes after its parts is known.
    Known,
}

/// What to do with an observation.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    Take,
    /// It waits.
    Waits,
    /// Take this earlier one first.
    After(Box<Observation>),
}

impl FirstPart {
    /// Whether no observation needs to wait.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Known)
    }

    /// Takes the observation of a line. A main loss gets the parts of its step that came before it.
    pub(super) fn see(&mut self, found: &mut Observation) -> Seen {
        if found.losses.iter().all(|loss| loss.phase != Phase::Train) {
            let earlier = if found.losses.is_empty() { None } else { self.flush() };
            return earlier.map_or(Seen::Take, |earlier| Seen::After(Box::new(earlier)));
        }
        let part = is_part(found);
        match std::mem::replace(self, Self::Known) {
            Self::Unknown if part => {
                *self = Self::Waits(Box::new(std::mem::take(found)));
                Seen::Waits
            }
            Self::Waits(mut held) if is_beside(&held, found) => {
                if part {
                    held.losses.append(&mut found.losses);
                    *self = Self::Waits(held);
                    return Seen::Waits;
                }
                // Of losses with one span, the main one is used.
                let main = found.losses.first().map_or(Span::Step, |loss| loss.span);
                let parts = held.losses.drain(..);
                found.losses.extend(parts.map(|part| Loss { span: part.span.max(main), ..part }));
                Seen::Take
            }
            Self::Waits(held) => Seen::After(held),
            Self::Unknown | Self::Known => Seen::Take,
        }
    }

    /// Takes an observation of another form, such as a bar. The parts do not wait beyond their step.
    pub(super) fn pass(&mut self, found: &Observation) -> Seen {
        let is_over = match self {
            Self::Waits(held) => !found.losses.is_empty() || found.step > held.step,
            Self::Unknown | Self::Known => false,
        };
        let earlier = if is_over { self.flush() } else { None };
        earlier.map_or(Seen::Take, |earlier| Seen::After(Box::new(earlier)))
    }

    /// Returns the parts that wait.
    pub(super) fn flush(&mut self) -> Option<Observation> {
        match self {
            Self::Waits(held) => {
                let held = std::mem::take(&mut **held);
                *self = Self::Known;
                Some(held)
            }
            Self::Unknown | Self::Known => None,
        }
    }
}

/// Whether a line has a step and one part of a loss.
fn is_part(found: &Observation) -> bool {
    let [loss] = found.losses.as_slice() else { return false };
    found.step.is_some() && rank(&loss.name) >= PART
}

/// Whether a line has another loss of the same step.
fn is_beside(held: &Observation, found: &Observation) -> bool {
    let place = |found: &Observation| (found.step, found.epoch, found.rank);
    let [loss] = found.losses.as_slice() else { return false };
    place(held) == place(found)
        && held.losses.len() < MAX_PARTS
        && held.losses.iter().all(|part| part.name != loss.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    fn names(found: &Observation) -> Vec<&str> {
        found.losses.iter().map(|loss| loss.name.as_str()).collect()
    }

    #[test]
    fn parts_wait_for_the_main_loss_of_their_step() {
        let mut first = FirstPart::default();
        assert_eq!(first.see(&mut line(5, "edge_loss")), Seen::Waits);
        assert_eq!(first.see(&mut line(5, "area_loss")), Seen::Waits);
        let mut main = line(5, "loss");
        assert_eq!(first.see(&mut main), Seen::Take);
        assert_eq!(names(&main), ["loss", "edge_loss", "area_loss"]);
        assert!(first.is_known() && first.see(&mut line(6, "edge_loss")) == Seen::Take);
    }

    #[test]
    fn parts_without_a_main_loss_are_reported() {
        let mut held_out = line(5, "val_loss");
        held_out.losses.iter_mut().for_each(|loss| loss.phase = Phase::Validation);
        for mut next in [line(6, "edge_loss"), line(5, "edge_loss"), line(6, "loss"), held_out] {
            let mut first = FirstPart::default();
            assert_eq!(first.see(&mut line(5, "edge_loss")), Seen::Waits);
            assert_eq!(first.see(&mut Observation::default()), Seen::Take);
            assert_eq!(first.see(&mut next), Seen::After(Box::new(line(5, "edge_loss"))));
            assert!(first.is_known() && first.flush().is_none());
        }
        let mut first = FirstPart::default();
        assert_eq!(first.see(&mut line(5, "edge_loss")), Seen::Waits);
        assert_eq!(first.flush(), Some(line(5, "edge_loss")));
        assert!(first.is_known());
    }

    #[test]
    fn parts_come_before_a_bar_of_a_later_step() {
        let frame = |step| Observation { step: Some(step), ..Observation::default() };
        for (next, waits) in [(frame(5), true), (frame(6), false), (line(5, "loss"), false)] {
            let mut first = FirstPart::default();
            assert_eq!(first.see(&mut line(5, "edge_loss")), Seen::Waits);
            let expected =
                if waits { Seen::Take } else { Seen::After(Box::new(line(5, "edge_loss"))) };
            assert_eq!(first.pass(&next), expected);
            assert_eq!(first.is_known(), !waits);
        }
    }

    #[test]
    fn main_loss_and_several_losses_do_not_wait() {
        let mut both = line(5, "edge_loss");
        both.losses.extend(line(5, "area_loss").losses);
        let without_step = Observation { step: None, ..line(5, "edge_loss") };
        for mut found in [line(5, "loss"), both, without_step] {
            let mut first = FirstPart::default();
            assert_eq!(first.see(&mut found), Seen::Take);
            assert!(first.is_known());
        }
    }
}
