//! Holds the batches that a job reports against the clock.
//!
//! A job may run several batches at once, and a batch may wait in a queue, so the sum of all durations
//! can grow faster than time. But no batch lasts longer than its container has run, and no job ends a
//! batch in no time.

use crate::unit::counter;

/// The most batches in a second that any job can end.
const MAX_RATE: f64 = 1e6;
/// Clocks of a job and of the allocator are read at slightly different times, in seconds.
const TOLERANCE: f64 = 1.0;

/// What the clock allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchClock {
    /// Seconds since the last reading.
    pub(super) elapsed: f64,
    /// Seconds since the container was started.
    pub(super) lifetime: f64,
}

impl BatchClock {
    /// Whether batches and their total duration in seconds can have grown from `before` to `now`.
    pub(super) fn allows(self, before: (u64, f64), now: (u64, f64)) -> bool {
        let Some(ended) = now.0.checked_sub(before.0) else { return false };
        let (ended, took) = (counter(ended), now.1 - before.1);
        let longest = ended * (self.lifetime + TOLERANCE);
        took.is_finite()
            && took >= 0.0
            && (ended > 0.0 || took <= 0.0)
            && ended <= (self.elapsed + TOLERANCE) * MAX_RATE
            && took <= longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: BatchClock = BatchClock { elapsed: 1.0, lifetime: 60.0 };

    #[test]
    fn possible_batches_are_allowed() {
        for now in [
            (100, 10.0),
            (110, 11.0),
            // A queue that is served late, and several batches at once.
            (110, 510.0),
            (100 + 1_000_000, 10.0),
        ] {
            assert!(CLOCK.allows((100, 10.0), now), "{now:?}");
        }
        let unknown = BatchClock { elapsed: f64::INFINITY, lifetime: f64::INFINITY };
        assert!(unknown.allows((0, 0.0), (1_000_000_000, 1e9)));
    }

    #[test]
    fn impossible_batches_are_not() {
        for now in [
            (99, 10.0),
            (110, 9.0),
            (110, f64::NAN),
            (110, f64::INFINITY),
            // Time that no batch took, and a batch that began before its container.
            (100, 10.5),
            (101, 100.0),
            (u64::MAX, 10.0),
        ] {
            assert!(!CLOCK.allows((100, 10.0), now), "{now:?}");
        }
    }
}
