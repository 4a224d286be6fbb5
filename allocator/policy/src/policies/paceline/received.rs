//! The service that a job has received, in node-seconds.

use crate::unit::saturate;

/// The service received since the job was first seen, and before that by its own counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    total: f64,
    /// The last reading of its counter.
    counter: Option<f64>,
}

impl Received {
    /// Starts with the first reading of the counter.
    pub(super) fn new(counter: Option<f64>) -> Self {
        let counter = usable(counter);
        Self { total: counter.unwrap_or(0.0), counter }
    }

    /// Records another reading, or `estimate` without one. Returns the service received before the first
    /// reading, which a first reading includes.
    pub(super) fn take(&mut self, counter: Option<f64>, estimate: f64) -> f64 {
        match (usable(counter), self.counter) {
            (Some(now), Some(before)) => {
                // A counter that has fallen restarted at 0.
                let grown = if now < before { now } else { now - before };
                self.total = saturate(self.total + grown);
                self.counter = Some(now);
                0.0
            }
            (Some(now), None) => {
                let earlier = (now - self.total).max(0.0);
                (self.total, self.counter) = (self.total.max(now), Some(now));
                earlier
            }
            // The next reading includes this time.
            (None, Some(_)) => 0.0,
            (None, None) => {
                self.total = saturate(self.total + usable(Some(estimate)).unwrap_or(0.0));
                0.0
            }
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.total
    }
}

fn usable(x: Option<f64>) -> Option<f64> {
    x.filter(|x| x.is_finite() && *x >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_that_falls_adds_to_what_was_before() {
        let mut received = Received::new(Some(3.0));
        for (counter, expected) in [(5.0, 5.0), (1.0, 6.0), (1.5, 6.5), (f64::NAN, 6.5)] {
            received.take(Some(counter), 0.7);
            assert!((received.total() - expected).abs() < 1e-12, "{counter}: {}", received.total());
        }
    }

    #[test]
    fn late_first_reading_includes_the_time_before() {
        let mut received = Received::new(None);
        assert!(received.take(None, 0.5) <= 0.0);
        let earlier = received.take(Some(20.0), 0.0);
        assert!((earlier - 19.5).abs() < 1e-12 && (received.total() - 20.0).abs() < 1e-12);
    }
}
