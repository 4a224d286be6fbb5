//! One pass over the training data: its first step and its length.

/// Maximum number of remembered loops other than the training.
const OTHERS: usize = 8;

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
    /// The lengths of other loops, such as validations.
    others: Vec<u64>,
    /// The loop after that of the training, if it is taken for an evaluation: its length, and the step that it
    /// has reached.
    evaluation: Option<(u64, u64)>,
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
        let counted = self.begin().zip(self.length).filter(|_| follows);
        self.counted = counted.and_then(|(begin, length)| begin.checked_add(length));
        if before < self.before {
            // The run has restarted.
            self.others.clear();
        }
        (self.before, self.length, self.step) = (before, None, 0);
        self.evaluation = None;
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
        self.step = step;
        self.evaluation = None;
        true
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
