//! The last few losses, for their mean.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hot::slot::Slot;

/// A ring of the last losses.
///
/// Each writer takes a ticket for its place and never waits. While several write at the same moment,
/// a reader may see a loss from the previous round of the ring; the next reading sees the new one.
#[derive(Debug)]
pub(crate) struct Window {
    /// The number of the next loss.
    next: AtomicU64,
    /// The number of losses in the mean.
    size: u64,
    /// Its length is a power of two, so that a place is found without a division.
    slots: Box<[Slot]>,
}

impl Window {
    /// A window of `size` losses.
    pub(crate) fn new(size: u32) -> Self {
        let places = size.next_power_of_two();
        let slots = (0..places).map(|_| Slot::unknown()).collect();
        Self { next: AtomicU64::new(0), size: size.into(), slots }
    }

    /// The number of losses in the mean.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Puts a finite loss in the place of the oldest, and returns its number, from 0.
    pub(crate) fn push(&self, loss: f64) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.slot(number) {
            slot.set(loss);
        }
        number
    }

    /// The mean of the losses up to `number`, if they fill the window.
    pub(crate) fn full_mean(&self, number: u64) -> Option<f64> {
        (number + 1 >= self.size).then(|| self.mean_up_to(number)).flatten()
    }

    /// The mean of the losses so far, also before the window is full.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.mean_up_to(self.next.load(Ordering::Relaxed).checked_sub(1)?)
    }

    fn mean_up_to(&self, last: u64) -> Option<f64> {
        let first = (last + 1).saturating_sub(self.size);
        let (count, sum) = (first..=last)
            .filter_map(|number| self.slot(number)?.get())
            .fold((0_u32, 0.0), |(count, sum), loss| (count + 1, sum + loss));
        (count > 0).then(|| sum / f64::from(count))
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        let at = usize::try_from(number).unwrap_or(0) & (self.slots.len() - 1);
        self.slots.get(at)
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
    fn mean_covers_only_last_losses() {
        let window = Window::new(3);
        for loss in [100.0, 1.0, 2.0, 6.0] {
            window.push(loss);
        }
        assert_eq!(window.mean(), Some(3.0));
    }

    #[test]
    fn the_full_mean_waits_for_the_last_place() {
        let window = Window::new(2);
        let first = window.push(4.0);
        assert_eq!((window.mean(), window.full_mean(first)), (Some(4.0), None));
        let second = window.push(2.0);
        assert_eq!(window.full_mean(second), Some(3.0));
    }
}
