//! Values that may be unknown, shared between threads without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::hot::clock::nanos;

/// Means "unknown": the bits of `f64::NAN`. A slot is given finite numbers only, so this cannot be
/// confused with one.
const UNKNOWN: u64 = f64::NAN.to_bits();
/// Means "unknown" in a [`Span`].
const NEVER: u64 = u64::MAX;

/// An `Option<f64>` that any thread may read or set.
#[derive(Debug)]
pub(crate) struct Slot(AtomicU64);

impl Slot {
    /// An unknown number.
    pub(crate) fn unknown() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }

    /// The number, if it is known.
    pub(crate) fn get(&self) -> Option<f64> {
        let bits = self.0.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f64::from_bits(bits))
    }

    /// Sets the number.
    pub(crate) fn set(&self, number: f64) {
        self.0.store(number.to_bits(), Ordering::Relaxed);
    }

    /// Sets the number unless it is known already.
    pub(crate) fn set_once(&self, number: f64) {
        // Reading first is far cheaper, and nearly always enough.
        if self.0.load(Ordering::Relaxed) == UNKNOWN {
            let bits = number.to_bits();
            // If it fails, another thread was first, which is as good.
            self.0.compare_exchange(UNKNOWN, bits, Ordering::Relaxed, Ordering::Relaxed).ok();
        }
    }
}

/// An `Option<Duration>` that any thread may read or set: a duration, or a moment since the start.
#[derive(Debug)]
pub(crate) struct Span(AtomicU64);

impl Span {
    /// An unknown span.
    pub(crate) fn unknown() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// The span, if it is known.
    pub(crate) fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos != NEVER).then(|| Duration::from_nanos(nanos))
    }

    /// Sets the span, in nanoseconds.
    pub(crate) fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }

    /// Sets the span unless it is known already; returns whether it was set.
    pub(crate) fn set_once(&self, span: Duration) -> bool {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.compare_exchange(NEVER, nanos(span), set, fetch).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_unknown_until_it_is_set() {
        let slot = Slot::unknown();
        assert_eq!(slot.get(), None);
        slot.set(0.0);
        assert_eq!(slot.get(), Some(0.0));
    }

    #[test]
    fn setting_once_keeps_the_first_number() {
        let slot = Slot::unknown();
        slot.set_once(-1.5);
        slot.set_once(2.5);
        assert_eq!(slot.get(), Some(-1.5));
    }

    #[test]
    fn a_span_that_is_set_once_stays() {
        let span = Span::unknown();
        assert_eq!(span.get(), None);
        assert!(span.set_once(Duration::ZERO));
        assert!(!span.set_once(Duration::from_secs(1)));
        assert_eq!(span.get(), Some(Duration::ZERO));
    }
}
