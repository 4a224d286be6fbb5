//! Finds the step of a loss in a bar.
//!
//! Most loops call `set_postfix` before the bar's counter moves. The frame `0/40 … loss=2.3` is
//! then of step 1. Each call draws a frame, while the counter may lag by several steps. Others,
//! such as Lightning, move the counter first and draw a frame with the loss of the previous step.

/// Follows one bar.
#[derive(Debug, Default)]
pub(super) struct Counter {
    order: Order,
    redraws: Redraws,
    /// The counter of the previous frame; `loss` holds its loss as bits.
    n: u64,
    loss: Option<u64>,
    /// The last reported step.
    step: u64,
    /// Frames with a loss since the counter moved.
    frames: u64,
    /// Whether the bar has been seen from its start.
    from_start: bool,
    /// How often the bar has restarted.
    restarts: u32,
    /// Whether a frame has had a loss.
    tells: bool,
    moved: Moved,
    /// How many steps each loss is of, if it comes before the counter moves by several.
    stride: u64,
}

/// Whether the loss or the counter changes first in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Unknown,
    Loss,
    Counter,
}

/// How the last frame has moved the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Moved {
    #[default]
    No,
    Yes,
    /// By several steps and with another loss: frames before it are missing.
    Jumped,
}

/// The meaning of another frame with the same counter and loss, if the loss comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Redraws {
    /// A redraw of the same step, as far as is known.
    #[default]
    Same,
    /// Another step: the number of frames has agreed with the counter.
    Steps,
    /// Not a step, even with another loss: there are more losses than steps.
    More,
}

impl Moved {
    fn new(by: u64, changed: bool) -> Self {
        match by {
            0 => Self::No,
            2.. if changed => Self::Jumped,
            _ => Self::Yes,
        }
    }
}

impl Counter {
    /// Takes a frame with the bits of its loss. Returns the step whose loss it shows, if that is new.
    /// `again`: the frame was redrawn because something else was printed.
    pub(super) fn frame(
        &mut self,
        n: u64,
        total: Option<u64>,
        loss: Option<u64>,
        again: bool,
    ) -> Option<u64> {
        if n < self.n {
            self.restart();
        }
        if loss.is_some() && !std::mem::replace(&mut self.tells, true) {
            // Passes without any loss were of something else, such as a preparation.
            self.restarts = 0;
        }
        self.from_start |= n == 0;
        let moved = n - self.n;
        let changed = loss.is_some() && loss != self.loss;
        let before = std::mem::replace(&mut self.moved, Moved::new(moved, changed));
        if self.order == Order::Unknown && changed && self.from_start {
            self.order = if n == 0 { Order::Loss } else { Order::Counter };
        }
        // Another loss before the counter moves.
        if self.order != Order::Loss && changed && moved == 0 && self.step == n && n > 0 {
            self.order = Order::Loss;
        }
        let new = match self.order {
            Order::Loss if before == Moved::Jumped && moved == 1 && !changed => {
                // The loss was that of the next step, whose counter comes now.
                self.step = self.step.max(n);
                None
            }
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

    /// Begins another pass.
    pub(super) fn restart(&mut self) {
        (self.n, self.step, self.frames) = (0, 0, 0);
        self.restarts = self.restarts.saturating_add(1);
    }

    /// Whether the last frame has moved the counter, beyond the last reported step, without another
    /// loss: a loss of few digits often stays the same.
    pub(super) fn has_moved_beyond_losses(&self) -> bool {
        self.moved != Moved::No && self.n > self.step
    }

    /// The counter of the bar.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// How often the bar has restarted.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// The epoch, if the bar restarts with each epoch.
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
            let from = if self.stride > 1 { n } else { self.step };
            return is_step.then(|| from.saturating_add(self.stride.max(1)));
        }
        // The loss was drawn once, and then the counter with it.
        if self.frames == 1 && !changed && self.redraws == Redraws::Same && moved > 1 {
            self.stride = moved;
        }
        if self.stride > 1 && !changed {
            self.step = self.step.max(n);
            return None;
        }
        if self.step > n {
            self.redraws = Redraws::More;
            self.step = n;
        } else if self.redraws != Redraws::More {
            self.redraws = if self.frames == moved { Redraws::Steps } else { Redraws::Same };
        }
        if n == self.step && changed && self.redraws != Redraws::More {
            // The frame without the next loss was not drawn.
            return Some(self.step.saturating_add(1));
        }
        (n > self.step).then_some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps reported for frames of a counter and a loss; a negative loss means none.
    fn steps(total: u64, frames: &[(u64, f64)]) -> Vec<(u64, f64)> {
        let mut counter = Counter::default();
        let mut steps = Vec::new();
        for (n, loss) in frames {
            let shown = Some(*loss).filter(|loss| *loss >= 0.0);
            if let Some(step) = counter.frame(*n, Some(total), shown.map(f64::to_bits), false) {
                steps.push((step, *loss));
            }
        }
        steps
    }

    #[test]
    fn loss_before_the_counter_is_of_the_next_step() {
        let frames =
            [(0, -1.0), (0, 5.0), (0, 4.0), (2, 4.0), (2, 3.0), (2, 2.0), (4, 2.0), (4, 2.0)];
        assert_eq!(steps(4, &frames), [(1, 5.0), (2, 4.0), (3, 3.0), (4, 2.0)]);
    }

    #[test]
    fn loss_of_the_next_step_may_come_with_the_counter() {
        let frames = [(0, 5.0), (1, 4.0), (2, 3.0), (3, 3.0)];
        assert_eq!(steps(3, &frames), [(1, 5.0), (2, 4.0), (3, 3.0)]);
    }

    #[test]
    fn loss_behind_missing_frames_is_not_repeated() {
        let frames = [(0, -1.0), (0, 9.0), (1, 9.0), (1, 8.0), (2, 8.0), (70, 2.0), (71, 2.0)];
        assert_eq!(steps(71, &frames), [(1, 9.0), (2, 8.0), (70, 2.0)]);
    }

    #[test]
    fn order_is_seen_in_the_middle_of_a_run() {
        let frames = [(15, 1.0), (15, 2.0), (16, 2.0), (16, 3.0), (17, 3.0), (17, 4.0)];
        assert_eq!(steps(20, &frames), [(15, 1.0), (16, 2.0), (17, 3.0), (18, 4.0)]);
    }

    #[test]
    fn equal_losses_are_steps_once_the_counter_agrees() {
        let frames =
            [(0, -1.0), (0, 1.0), (1, 1.0), (1, 1.0), (2, 1.0), (2, 1.0), (3, 1.0), (3, 1.0)];
        assert_eq!(steps(3, &frames), [(1, 1.0), (2, 1.0), (3, 1.0)]);
    }

    #[test]
    fn loss_after_the_counter_is_of_the_current_step() {
        let frames =
            [(0, -1.0), (1, -1.0), (1, 5.0), (2, 5.0), (2, 4.0), (3, 4.0), (3, 4.0), (3, 4.0)];
        assert_eq!(steps(3, &frames), [(1, 5.0), (2, 4.0), (3, 4.0)]);
        // The next epoch begins with the last loss of this one.
        let two = [(0, -1.0), (1, -1.0), (1, 5.0), (0, 5.0), (1, 5.0), (1, 4.0)];
        assert_eq!(steps(1, &two), [(1, 5.0), (1, 4.0)]);
    }

    #[test]
    fn loss_shown_with_the_counter_is_of_that_step() {
        let frames = [(0, -1.0), (5, 5.0), (10, 4.0), (15, 3.0), (15, 3.0)];
        assert_eq!(steps(15, &frames), [(5, 5.0), (10, 4.0), (15, 3.0)]);
    }

    #[test]
    fn loss_of_several_steps_is_taken_once() {
        let frames = [
            (0, -1.0),
            (0, 9.0),
            (10, 9.0),
            (10, 8.0),
            (20, 8.0),
            (20, 7.0),
            (30, 7.0),
            (70, 5.0),
            (80, 5.0),
            (80, 4.0),
        ];
        // The first one is not known to be of several.
        assert_eq!(steps(90, &frames), [(1, 9.0), (20, 8.0), (30, 7.0), (70, 5.0), (90, 4.0)]);
    }

    #[test]
    fn more_losses_than_steps_do_not_run_ahead() {
        let frames =
            [(0, -1.0), (0, 9.0), (0, 8.0), (1, 8.0), (1, 7.0), (1, 6.0), (2, 6.0), (2, 5.0)];
        assert_eq!(steps(9, &frames), [(1, 9.0), (2, 8.0), (2, 6.0)]);
    }

    #[test]
    fn redrawn_frame_is_not_a_step() {
        let mut counter = Counter::default();
        for (n, loss, again, expected) in [
            (0, None, false, None),
            (0, Some(1.0), false, Some(1)),
            (1, Some(1.0), false, None),
            (1, Some(1.0), true, None),
            (1, Some(0.9), false, Some(2)),
            (2, Some(0.9), false, None),
        ] {
            let loss = loss.map(f64::to_bits);
            assert_eq!(counter.frame(n, Some(9), loss, again), expected, "{n} {loss:?}");
        }
    }

    #[test]
    fn largest_number_is_no_more_than_a_number() {
        let frames = [(u64::MAX, 0.5), (u64::MAX, 0.4), (u64::MAX, 0.3)];
        assert!(steps(u64::MAX, &frames).iter().all(|(step, _)| *step == u64::MAX));
    }
}
