//! An endpoint's server-sent events: progress as soon as there is news.

use std::path::Path;
use std::time::Duration;

use paceline_wire::Progress;
use tokio::time::Instant;

use super::call::{Call, too_much};
use super::lines::Lines;
use super::{EndpointError, LONGEST, Way};

/// So many bytes may come within [`WINDOW`]: some hundred events, where about ten are to be.
const MOST: usize = 1024 * 1024;
/// See [`MOST`].
const WINDOW: Duration = Duration::from_secs(10);

/// A stream of events that is open.
pub(super) struct Events {
    call: Call,
    lines: Lines,
    budget: Budget,
}

/// What may still come, so that a job that talks without end is no load.
#[derive(Debug)]
struct Budget {
    left: usize,
    since: Instant,
}

impl Events {
    /// Opens the stream.
    pub(super) async fn open(proc: &Path, way: &Way) -> Result<Self, EndpointError> {
        let call = Call::get(proc, way, "/v1/events").await?;
        if !call.is("text/event-stream") {
            return Err(EndpointError::Events(way.to_string()));
        }
        Ok(Self { call, lines: Lines::new(LONGEST), budget: Budget::new(Instant::now()) })
    }

    /// The next progress; an end is an error, too. Nothing is lost when this is given up.
    pub(super) async fn next(&mut self) -> Result<Progress, EndpointError> {
        loop {
            if let Some(data) = self.lines.next() {
                return super::parse(self.call.way(), &data);
            }
            let Some(piece) = self.call.piece().await? else {
                return Err(EndpointError::Ended(self.call.way().to_owned()));
            };
            let spent = self.budget.spend(piece.len(), Instant::now());
            if !spent || self.lines.take(&piece).is_err() {
                return Err(too_much(self.call.way()));
            }
        }
    }
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { left: MOST, since: now }
    }

    /// Whether that much may come.
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
    fn what_comes_too_fast_is_cut_off_and_what_comes_slowly_is_not() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.spend(MOST, start) && !budget.spend(1, start));
        for window in 1..100 {
            assert!(budget.spend(MOST, start + WINDOW * window), "{window}");
        }
    }
}
