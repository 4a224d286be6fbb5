//! Which step a loss in a bar belongs to.
//!
//! Most loops call `set_postfix` before the bar's counter moves: the frame `0/40 … loss=2.3` is of
//! step 1, and the counter may lag by several steps, while each call draws a frame. Others
//! (Lightning) move the counter first and draw a frame for it with the loss of the step before.

/// Follows one bar.
#[derive(Debug, Default)]
pub(super) struct Counter {
    order: Order,
    redraws: Redraws,
    /// The counter and the bits of the loss of the frame before.
    n: u64,
    loss: Option<u64>,
    /// The last step that was told.
    step: u64,
    /// Frames with a loss since the counter moved.
    frames: u64,
    /// Whether the bar has been seen from its start.
    from_start: bool,
    /// How often it has begun anew.
    restarts: u32,
}

/// What comes first in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Unknown,
    Loss,
    Counter,
}

/// What another frame with the same counter and loss is, where the loss comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Redraws {
    /// Nothing, as far as is known.
    #[default]
    Same,
    /// Another step: their number has agreed with the counter.
    Steps,
    /// Nothing, and not even another loss is: there are more losses than steps.
    More,
}

impl Counter {
    /// Takes a frame, and returns the step whose loss it shows if that is new. A frame `again` is
    /// drawn because something else was printed.
    pub(super) fn frame(
        &mut self,
        n: u64,
        total: Option<u64>,
        loss: Option<f64>,
        again: bool,
    ) -> Option<u64> {
        let loss = loss.map(f64::to_bits);
        if n < self.n {
            (self.n, self.step, self.frames) = (n, n, 0);
            self.restarts = self.restarts.saturating_add(1);
        }
        self.from_start |= n == 0;
        let moved = n - self.n;
        let changed = loss.is_some() && loss != self.loss;
        if self.order == Order::Unknown && changed && self.from_start {
            self.order = if n == 0 { Order::Loss } else { Order::Counter };
        }
        if self.order == Order::Counter && changed && moved == 0 && self.step == n {
            self.order = Order::Loss;
        }
        let new = match self.order {
            Order::Loss => self.loss_first(n, changed, again),
            Order::Unknown | Order::Counter => {
                let second = moved == 0 && loss.is_some() && !again;
                (n > self.step && (changed || second)).then_some(n)
            }
        };
        self.frames = if moved > 0 { 0 } else { self.frames + u64::from(!again && loss.is_some()) };
        self.n = n;
        self.loss = loss;
        // The last frame is drawn again when the bar is closed.
        let step = new.filter(|step| loss.is_some() && total.is_none_or(|total| *step <= total))?;
        self.step = step;
        Some(step)
    }

    /// Where the bar stands.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// The epoch, if the bar has begun anew with each.
    pub(super) fn epoch(&self) -> Option<u32> {
        (self.restarts > 0).then(|| self.restarts.saturating_add(1))
    }

    fn loss_first(&mut self, n: u64, changed: bool, again: bool) -> Option<u64> {
        let moved = n - self.n;
        if moved == 0 {
            let is_step = match self.redraws {
                Redraws::Same => changed,
                Redraws::Steps => changed || !again,
                Redraws::More => false,
            };
            return is_step.then_some(self.step + 1);
        }
        if self.step > n {
            self.redraws = Redraws::More;
            self.step = n;
        } else if self.redraws != Redraws::More {
            self.redraws = if self.frames == moved { Redraws::Steps } else { Redraws::Same };
        }
        (n > self.step).then_some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps told for frames of a counter and a loss; a negative loss is none.
    fn steps(total: u64, frames: &[(u64, f64)]) -> Vec<(u64, f64)> {
        let mut counter = Counter::default();
        let mut told = Vec::new();
        for (n, loss) in frames {
            let shown = Some(*loss).filter(|loss| *loss >= 0.0);
            if let Some(step) = counter.frame(*n, Some(total), shown, false) {
                told.push((step, *loss));
            }
        }
        told
    }

    #[test]
    fn a_loss_before_the_counter_is_of_the_step_to_come() {
        let frames =
            [(0, -1.0), (0, 5.0), (0, 4.0), (2, 4.0), (2, 3.0), (2, 2.0), (4, 2.0), (4, 2.0)];
        assert_eq!(steps(4, &frames), [(1, 5.0), (2, 4.0), (3, 3.0), (4, 2.0)]);
    }

    #[test]
    fn equal_losses_are_steps_once_the_counter_agrees() {
        let frames =
            [(0, -1.0), (0, 1.0), (1, 1.0), (1, 1.0), (2, 1.0), (2, 1.0), (3, 1.0), (3, 1.0)];
        assert_eq!(steps(3, &frames), [(1, 1.0), (2, 1.0), (3, 1.0)]);
    }

    #[test]
    fn a_counter_before_its_loss_is_of_this_step() {
        let frames =
            [(0, -1.0), (1, -1.0), (1, 5.0), (2, 5.0), (2, 4.0), (3, 4.0), (3, 4.0), (3, 4.0)];
        assert_eq!(steps(3, &frames), [(1, 5.0), (2, 4.0), (3, 4.0)]);
        // The next epoch begins with the last loss of this one.
        let two = [(0, -1.0), (1, -1.0), (1, 5.0), (0, 5.0), (1, 5.0), (1, 4.0)];
        assert_eq!(steps(1, &two), [(1, 5.0), (1, 4.0)]);
    }

    #[test]
    fn a_loss_that_shows_only_when_the_counter_moves_is_of_that_step() {
        let frames = [(0, -1.0), (5, 5.0), (10, 4.0), (15, 3.0), (15, 3.0)];
        assert_eq!(steps(15, &frames), [(5, 5.0), (10, 4.0), (15, 3.0)]);
    }

    #[test]
    fn more_losses_than_steps_do_not_run_ahead() {
        let frames =
            [(0, -1.0), (0, 9.0), (0, 8.0), (1, 8.0), (1, 7.0), (1, 6.0), (2, 6.0), (2, 5.0)];
        assert_eq!(steps(9, &frames), [(1, 9.0), (2, 8.0), (2, 6.0)]);
    }

    #[test]
    fn a_frame_drawn_again_is_no_step() {
        let mut counter = Counter::default();
        for (n, loss, again, expected) in [
            (0, None, false, None),
            (0, Some(1.0), false, Some(1)),
            (1, Some(1.0), false, None),
            (1, Some(1.0), true, None),
            (1, Some(0.9), false, Some(2)),
            (2, Some(0.9), false, None),
        ] {
            assert_eq!(counter.frame(n, Some(9), loss, again), expected, "{n} {loss:?}");
        }
    }
}
