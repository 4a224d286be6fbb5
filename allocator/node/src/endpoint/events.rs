//! An endpoint's server-sent events: reports as soon as there is news.

use std::time::Duration;

use paceline_wire::Progress;
use tokio::time::Instant;

use super::call::{Call, too_much};
use super::lines::Lines;
use super::{EndpointError, MAX_ANSWER, Reach, Route};

/// The most bytes within [`WINDOW`]: several hundred events, where about ten are expected.
const MAX_EVENTS_BYTES: usize = 1024 * 1024;
/// See [`MAX_EVENTS_BYTES`].
const WINDOW: Duration = Duration::from_secs(10);

/// A stream of events that is open.
pub(super) struct Events {
    call: Call,
    lines: Lines,
    budget: Budget,
}

/// The bytes that may still come, so that a job that sends without end causes no load.
#[derive(Debug)]
struct Budget {
    left: usize,
    since: Instant,
}

impl Events {
    /// Opens the stream.
    pub(super) async fn open(reach: &Reach, route: &Route) -> Result<Self, EndpointError> {
        let call = Call::get(reach, route, "/v1/events").await?;
        if !call.is("text/event-stream") {
            return Err(EndpointError::Events(route.to_string()));
        }
        Ok(Self { call, lines: Lines::new(MAX_ANSWER), budget: Budget::new(Instant::now()) })
    }

    /// The next report. The end of the stream is an error. Nothing is lost when the future is
    /// dropped.
    pub(super) async fn next(&mut self) -> Result<Progress, EndpointError> {
        loop {
            if let Some(data) = self.lines.next() {
                return super::parse(self.call.route(), &data);
            }
            let Some(piece) = self.call.piece().await? else {
                return Err(EndpointError::Ended(self.call.route().to_owned()));
            };
            let spent = self.budget.spend(piece.len(), Instant::now());
            if !spent || self.lines.take(&piece).is_err() {
                return Err(too_much(self.call.route()));
            }
        }
    }
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { left: MAX_EVENTS_BYTES, since: now }
    }

    /// Whether this many bytes are within the budget; takes them off.
    fn spend(&mut self, bytes: usize, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_events_are_cut_off_and_slow_ones_are_not() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.spend(MAX_EVENTS_BYTES, start) && !budget.spend(1, start));
        for window in 1..100 {
            assert!(budget.spend(MAX_EVENTS_BYTES, start + WINDOW * window), "{window}");
        }
    }
}
