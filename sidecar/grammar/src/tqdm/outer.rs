//! An outer bar that counts epochs, around the bars that count steps.

use super::bars::{Bar, Id};
use super::frame::Frame;

/// The bar of the epochs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    /// The number of completed epochs.
    n: u64,
    epochs: Option<u64>,
    /// The bar, if it was only guessed that it counts epochs.
    guess: Option<Id>,
    /// Whether a bar of steps has been drawn since it moved.
    inner: bool,
    /// The counter of the bar of steps in its last frame, if it was not at its end and has not begun again since
    /// this one moved.
    within: Option<u64>,
    restarted: bool,
}

impl Outer {
    /// A bar whose text shows that it counts epochs.
    pub(super) fn said(frame: &Frame<'_>) -> Self {
        Self {
            n: frame.n,
            epochs: frame.total,
            guess: None,
            inner: false,
            within: None,
            restarted: false,
        }
    }

    /// A bar that is at its start while another one begins, so that it probably counts epochs.
    pub(super) fn guessed(bar: &Bar) -> Self {
        let (guess, within) = (Some(bar.id), Some(0));
        Self { n: 0, epochs: bar.total, guess, inner: true, within, restarted: false }
    }

    /// The bar, if it was only guessed that it counts epochs.
    pub(super) fn guess(&self) -> Option<Id> {
        self.guess
    }

    /// Takes a frame of a bar of steps, which restarts or continues. Returns whether this bar may
    /// be its outer bar: after a restart it must have moved.
    pub(super) fn is_around(&mut self, frame: &Frame<'_>, restarts: bool) -> bool {
        self.inner = true;
        self.restarted |= restarts;
        let is_within = frame.total.is_some_and(|total| frame.n < total);
        self.within = Some(frame.n).filter(|_| is_within && !self.restarted);
        !restarts || self.guess.is_none() || self.n > 0
    }

    /// Takes a frame of this bar. Returns whether it may still count epochs. A bar that moves
    /// without another one between counts steps, and so does one that moves as the other does or by many at once
    /// while that is not at its end.
    pub(super) fn goes_on(&mut self, frame: &Frame<'_>) -> bool {
        self.epochs = frame.total;
        if frame.n == self.n {
            return true;
        }
        let before = std::mem::replace(&mut self.n, frame.n);
        self.restarted = false;
        if let Some(inner) = self.within {
            let leaps = frame.n > before.saturating_add(1);
            let is_alike = inner > 0 && (inner == before || inner == frame.n) && frame.n > 1;
            if leaps || is_alike {
                return false;
            }
        }
        std::mem::replace(&mut self.inner, false) || frame.n == 0
    }

    /// The current epoch, counted from 1.
    pub(super) fn epoch(&self) -> Option<f64> {
        let epoch = self.n.saturating_add(1).min(self.epochs.unwrap_or(u64::MAX));
        u32::try_from(epoch).ok().map(f64::from)
    }

    /// The number of epochs.
    pub(super) fn epochs(&self) -> Option<u64> {
        self.epochs
    }
}
