//! The queue of batches before they are served.

use std::collections::VecDeque;
use std::time::Duration;

use super::arrivals::Arrivals;

/// The largest number of waiting batches; more are refused.
pub const MAX_WAITING: usize = 1000;

/// Batches that have arrived and not been served, in order of arrival. The caller passes the current
/// time, which must not go back.
#[derive(Debug)]
pub struct Queue {
    arrivals: Arrivals,
    next: Duration,
    waiting: VecDeque<Duration>,
    refused: u64,
}

impl Queue {
    /// An empty queue, before the first arrival.
    pub fn new(mut arrivals: Arrivals) -> Self {
        let next = arrivals.next_time();
        Self { arrivals, next, waiting: VecDeque::new(), refused: 0 }
    }

    /// Takes the batch that has waited the longest and returns its time of arrival, or else the
    /// time of the next arrival.
    pub fn take(&mut self, now: Duration) -> Result<Duration, Duration> {
        self.admit(now);
        self.waiting.pop_front().ok_or(self.next)
    }

    /// The number of waiting batches.
    pub fn waiting(&mut self, now: Duration) -> usize {
        self.admit(now);
        self.waiting.len()
    }

    /// The number of refused batches.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Adds all batches that have arrived by now, as far as there is room.
    fn admit(&mut self, now: Duration) {
        while self.next <= now {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push_back(self.next);
            } else {
                self.refused += 1;
            }
            self.next = self.arrivals.next_time();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_arrival_is_served_in_order_or_waits_or_is_refused(
            rate in 0.5_f64..2000.0,
            seed: u64,
            services in prop::collection::vec(1_u64..2000, 1..40),
        ) {
            let mut queue = Queue::new(Arrivals::new(rate, seed));
            let mut all = Arrivals::new(rate, seed);
            let mut now = Duration::ZERO;
            let mut served = Vec::new();
            for service in services {
                match queue.take(now) {
                    Ok(arrival) => {
                        prop_assert!(arrival <= now);
                        served.push(arrival);
                        now += Duration::from_millis(service);
                    }
                    Err(next) => {
                        prop_assert!(next > now);
                        prop_assert_eq!(queue.waiting(now), 0);
                        now = next;
                    }
                }
            }
            let waiting = queue.waiting(now);
            prop_assert!(waiting <= MAX_WAITING);
            prop_assert!(served.is_sorted());
            let times = std::iter::repeat_with(|| all.next_time());
            let arrived: Vec<_> = times.take_while(|time| *time <= now).collect();
            let refused = usize::try_from(queue.refused()).unwrap();
            prop_assert_eq!(served.len() + waiting + refused, arrived.len());
            prop_assert!(refused > 0 || arrived.starts_with(&served));
        }
    }

    #[test]
    fn arrival_at_full_queue_is_refused() {
        let mut queue = Queue::new(Arrivals::new(1000.0, 1));
        let now = Duration::from_secs(3);
        assert_eq!(queue.waiting(now), MAX_WAITING);
        let refused = queue.refused();
        assert!((1800..2200).contains(&refused), "{refused}");
        queue.take(now).unwrap();
        assert_eq!((queue.waiting(now), queue.refused()), (MAX_WAITING - 1, refused));
    }
}
