//! One pass over the training data: its first step and its length.

/// Maximum number of remembered loops other than the training.
const OTHERS: usize = 8;

/// Minimum number of steps that show how long a pass is. Of a log that is cut, the first two or three may be left.
const MIN_SHOWN: u64 = 4;

/// A step of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// The last step, with the mean of all.
    Ends,
    /// Another step.
    GoesOn,
}

/// The current pass of a source. A source without epochs has passes, too.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The number of passes before it.
    before: u64,
    /// Their steps, if they were counted. Otherwise they are assumed to be as long as this one.
    counted: Option<u64>,
    /// Its number of steps, if it is known.
    length: Option<u64>,
    /// The step that has been reached in it.
    step: u64,
    /// Its steps so far, if the log shows each of them.
    shown: Shown,
    /// The lengths of other loops, such as validations.
    others: Vec<u64>,
    /// The loop after that of the training, if it is taken for an evaluation: its length, and the step that it
    /// has reached.
    evaluation: Option<(u64, u64)>,
}

/// The steps of a pass whose length no line names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// None so far.
    #[default]
    None,
    /// Each one from the first to the last, which is not a redraw.
    Each { first: u64, last: u64 },
    /// The last one again, as a bar is drawn at its end.
    Again { last: u64 },
    /// Not each of them.
    Some,
}

impl Shown {
    /// Takes a step.
    fn take(self, step: u64) -> Self {
        match self {
            Self::None if step <= 1 => Self::Each { first: step, last: step },
            Self::Each { first, last } if last.checked_add(1) == Some(step) => {
                Self::Each { first, last: step }
            }
            Self::Each { last, .. } if last == step && last > 0 => Self::Again { last },
            Self::None | Self::Each { .. } | Self::Again { .. } | Self::Some => Self::Some,
        }
    }

    /// The number of steps. The first of them may be 0, but not where a bar has gone on to its end.
    fn length(self) -> Option<u64> {
        let length = match self {
            Self::Each { first: 0, last } => last.checked_add(1),
            Self::Each { last, .. } | Self::Again { last } => Some(last),
            Self::None | Self::Some => None,
        };
        length.filter(|length| *length >= MIN_SHOWN)
    }
}

impl Pass {
    /// The number of passes before it.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// Its number of steps.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Moves to the pass with `before` passes before it.
    pub(super) fn go_to(&mut self, before: u64) {
        let follows = self.before.checked_add(1) == Some(before);
        let length = self.length.or_else(|| self.shown.length());
        let counted = self.begin().zip(length).filter(|_| follows);
        self.counted = counted.and_then(|(begin, length)| begin.checked_add(length));
        if before < self.before {
            // The run has restarted.
            self.others.clear();
        }
        (self.before, self.length, self.step) = (before, None, 0);
        (self.evaluation, self.shown) = (None, Shown::None);
    }

    /// Takes a counter at `step` of `length` if it is that of an evaluation: a far shorter loop that begins once
    /// that of the training is over.
    pub(super) fn evaluates(&mut self, step: u64, length: u64) -> Option<Evaluation> {
        let trained = self.length.filter(|trained| length <= trained / 2)?;
        if self.others.contains(&length) {
            return None;
        }
        let before = match self.evaluation {
            Some((known, before)) if known == length => before,
            _ if self.step >= trained => 0,
            _ => return None,
        };
        self.evaluation = Some((length, step));
        // The last frame of a bar may be drawn twice.
        Some(if step >= length && before < length { Evaluation::Ends } else { Evaluation::GoesOn })
    }

    /// Whether a counter at `step` of `length` has begun another pass. A line that is only out of
    /// order does not begin one.
    pub(super) fn is_over(&self, step: u64, length: u64) -> bool {
        let half = length / 2;
        self.length == Some(length) && step <= half && self.step > half
    }

    /// Takes a counter at `step`, of `length` if that is known. Returns whether it is that of the
    /// training. A loop of another length that begins within a pass is not.
    pub(super) fn take(&mut self, step: u64, length: Option<u64>) -> bool {
        if let Some(length) = length {
            if self.others.contains(&length) {
                return false;
            }
            let differs = self.length.is_some_and(|known| known != length);
            if differs && step < self.step {
                if self.others.len() >= OTHERS {
                    self.others.remove(0);
                }
                self.others.push(length);
                return false;
            }
        }
        self.length = length.or(self.length);
        self.show(step);
        self.step = step;
        self.evaluation = None;
        true
    }

    /// Takes a step that the log shows. It may turn out to be one of the pass.
    #[inline]
    pub(super) fn show(&mut self, step: u64) {
        if self.length.is_none() {
            self.shown = self.shown.take(step);
        }
    }

    /// The steps of the passes before it.
    pub(super) fn begin(&self) -> Option<u64> {
        let none = Some(0).filter(|_| self.before == 0);
        none.or(self.counted).or_else(|| self.before.checked_mul(self.length?))
    }

    /// The total number of steps of so many passes. The current pass always counts as one of them,
    /// because some programs count epochs from 0 up to the last number.
    pub(super) fn total(&self, passes: u64) -> Option<u64> {
        let left = passes.max(self.before.checked_add(1)?) - self.before;
        self.begin()?.checked_add(left.checked_mul(self.length?)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passes_of_different_lengths_are_added_up() {
        let mut pass = Pass::default();
        assert!(pass.take(1, Some(40)));
        assert_eq!((pass.begin(), pass.total(3)), (Some(0), Some(120)));
        pass.go_to(1);
        assert_eq!((pass.begin(), pass.total(3)), (Some(40), None), "its length is not known yet");
        assert!(pass.take(1, Some(38)));
        assert_eq!((pass.begin(), pass.total(3)), (Some(40), Some(116)));
        pass.go_to(2);
        assert!(pass.take(1, Some(40)));
        assert_eq!((pass.begin(), pass.total(3)), (Some(78), Some(118)));
    }

    #[test]
    fn pass_is_as_long_as_the_steps_that_are_shown() {
        for (steps, length) in [
            (&[0, 1, 2, 3][..], Some(4)),
            (&[1, 2, 3, 4], Some(4)),
            (&[0, 1, 2, 3, 4, 4], Some(4)),
            (&[0, 1, 2], None),
            (&[0, 2, 4], None),
            (&[10, 11, 12], None),
            (&[1, 1, 2, 3], None),
        ] {
            let mut pass = Pass::default();
            assert!(steps.iter().all(|step| pass.take(*step, None)));
            pass.go_to(1);
            assert_eq!(pass.begin(), length, "{steps:?}");
            pass.go_to(3);
            assert_eq!(pass.begin(), None, "a pass was not seen");
        }
    }

    #[test]
    fn unseen_passes_count_as_long_as_the_current_one() {
        let mut pass = Pass::default();
        pass.go_to(5);
        assert!(pass.take(3, Some(10)));
        assert_eq!((pass.begin(), pass.total(6), pass.total(5)), (Some(50), Some(60), Some(60)));
    }

    #[test]
    fn loop_within_a_pass_is_not_the_training() {
        let mut pass = Pass::default();
        assert!(pass.take(40, Some(40)));
        assert!((0..=10).all(|step| !pass.take(step, Some(10))));
        pass.go_to(1);
        assert!(!pass.take(0, Some(10)), "it is known from the pass before");
        assert!(pass.take(0, Some(40)));
    }

    #[test]
    fn short_loop_after_the_training_is_an_evaluation() {
        let mut pass = Pass::default();
        assert!(pass.evaluates(1, 10).is_none() && pass.take(30, Some(40)));
        assert!(pass.evaluates(1, 10).is_none(), "the training is not over");
        assert!(pass.take(40, Some(40)) && pass.evaluates(1, 38).is_none());
        assert!((1..10).all(|step| pass.evaluates(step, 10) == Some(Evaluation::GoesOn)));
        assert_eq!(pass.evaluates(10, 10), Some(Evaluation::Ends));
        assert_eq!(pass.evaluates(10, 10), Some(Evaluation::GoesOn), "drawn again");
        pass.go_to(1);
        assert!(pass.evaluates(1, 10).is_none(), "no loop of the training was seen");
        assert!(pass.take(40, Some(40)) && pass.evaluates(10, 10) == Some(Evaluation::Ends));
    }

    #[test]
    fn loop_within_the_training_is_no_evaluation() {
        let mut pass = Pass::default();
        assert!(pass.take(10, Some(40)) && !pass.take(1, Some(4)) && pass.take(40, Some(40)));
        assert!(pass.evaluates(1, 4).is_none());
    }

    #[test]
    fn counter_that_advances_with_another_length_is_the_same() {
        let mut pass = Pass::default();
        assert!(pass.take(7, None) && pass.take(12, Some(12)) && pass.take(13, Some(15)));
        assert_eq!((pass.length(), pass.total(2)), (Some(15), Some(30)));
    }

    proptest! {
        #[test]
        fn total_is_never_less_than_what_is_reached(
            lengths in prop::collection::vec(1..1_000_u64, 1..20),
            passes in 0..40_u64,
        ) {
            let mut pass = Pass::default();
            let mut reached = 0;
            for (before, length) in (0..).zip(lengths) {
                pass.go_to(before);
                prop_assert!(pass.take(length, Some(length)));
                prop_assert_eq!(pass.begin(), Some(reached));
                reached += length;
                prop_assert!(pass.total(passes) >= Some(reached));
            }
        }
    }
}
