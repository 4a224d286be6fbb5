//! A bar that counts epochs, around the bars that count their steps.

use super::bars::{Bar, Id};
use super::frame::Frame;

/// The bar of the epochs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    /// How many epochs are done.
    n: u64,
    epochs: Option<u64>,
    /// Which bar it is, if it does not say that it counts epochs.
    guess: Option<Id>,
    /// A bar of steps has been drawn since it moved.
    inner: bool,
}

impl Outer {
    /// A bar that says that it counts epochs.
    pub(super) fn said(frame: &Frame<'_>) -> Self {
        Self { n: frame.n, epochs: frame.total, guess: None, inner: false }
    }

    /// A bar that is at its start while another one begins.
    pub(super) fn guessed(bar: &Bar) -> Self {
        Self { n: 0, epochs: bar.total, guess: Some(bar.id), inner: true }
    }

    /// Which bar it is, if it does not say that it counts epochs.
    pub(super) fn guess(&self) -> Option<Id> {
        self.guess
    }

    /// A bar of steps is drawn, which restarts or goes on. Returns whether this bar may be around it:
    /// it has moved by then.
    pub(super) fn is_around(&mut self, restarts: bool) -> bool {
        self.inner = true;
        !restarts || self.guess.is_none() || self.n > 0
    }

    /// Takes a frame of this bar. Returns whether it may still count epochs: a bar of steps moves
    /// while no other one does.
    pub(super) fn goes_on(&mut self, frame: &Frame<'_>) -> bool {
        self.epochs = frame.total;
        if frame.n == self.n {
            return true;
        }
        self.n = frame.n;
        std::mem::replace(&mut self.inner, false) || frame.n == 0
    }

    /// The epoch of the steps that are drawn, from 1.
    pub(super) fn epoch(&self) -> Option<f64> {
        let epoch = self.n.saturating_add(1).min(self.epochs.unwrap_or(u64::MAX));
        u32::try_from(epoch).ok().map(f64::from)
    }

    /// How many epochs there are.
    pub(super) fn epochs(&self) -> Option<u64> {
        self.epochs
    }
}
