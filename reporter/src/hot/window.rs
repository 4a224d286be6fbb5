//! The last few losses, for their mean.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::slot::Slot;

/// A ring of the last losses.
///
/// Writers take turns by a ticket and never wait. While several of them write at the same moment, a
/// reader may see a loss that is one turn of the ring old; the next reading sees the new one.
#[derive(Debug)]
pub(crate) struct Window {
    next: AtomicUsize,
    slots: Box<[Slot]>,
}

impl Window {
    /// A ring of `size` losses.
    pub(crate) fn new(size: u32) -> Self {
        Self { next: AtomicUsize::new(0), slots: (0..size).map(|_| Slot::unknown()).collect() }
    }

    /// Puts a finite loss in the place of the oldest.
    pub(crate) fn push(&self, loss: f64) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = ticket.checked_rem(self.slots.len()).and_then(|at| self.slots.get(at)) {
            slot.set(loss);
        }
    }

    /// The mean of the losses that are there.
    pub(crate) fn mean(&self) -> Option<f64> {
        let (count, sum) = self
            .slots
            .iter()
            .filter_map(Slot::get)
            .fold((0_u32, 0.0), |(count, sum), loss| (count + 1, sum + loss));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// The mean once the ring has been filled.
    pub(crate) fn full_mean(&self) -> Option<f64> {
        let full = self.slots.iter().all(|slot| slot.get().is_some());
        full.then(|| self.mean()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn an_empty_window_has_no_mean() {
        assert_eq!(Window::new(3).mean(), None);
    }

    #[test]
    fn the_mean_is_that_of_the_last_losses_alone() {
        let window = Window::new(3);
        for loss in [100.0, 1.0, 2.0, 6.0] {
            window.push(loss);
        }
        assert_eq!(window.mean(), Some(3.0));
    }

    #[test]
    fn the_full_mean_waits_for_the_last_place() {
        let window = Window::new(2);
        window.push(4.0);
        assert_eq!((window.mean(), window.full_mean()), (Some(4.0), None));
        window.push(2.0);
        assert_eq!(window.full_mean(), Some(3.0));
    }
}
