//! What was observed of a job since the limiter last looked at it.

use super::reading::Taken;
use crate::limiter::presses;
use crate::signal::mean_between;
use crate::unit::{Moment, Share};

/// Over less time than this many seconds, use says little: a cap works in periods of a tenth of a
/// second.
const LEAST_SECONDS: f64 = 0.5;

/// The marks that the last look set.
#[derive(Debug, Default)]
pub(super) struct Window {
    mark: Option<Taken>,
    /// Count and sum of the batches as of the last look that measured some.
    batches: Option<(u64, f64)>,
    /// When the last look was, and what it saw: asked twice at one moment, it sees the same.
    seen: Option<(Moment, Seen)>,
    /// Since when the last look saw what was used: `None` if it saw nothing of that.
    since: Option<Moment>,
}

/// What a look sees: `None` is what was not measured since the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The cap in force then.
    pub(super) cap: Share,
    pub(super) usage: Option<f64>,
    pub(super) pressed: bool,
    pub(super) batch_latency: Option<f64>,
}

/// What there is to be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) cap: Share,
    pub(super) cpus: f64,
    pub(super) latest: Option<Taken>,
    /// Count and sum of the batches from which on they count.
    pub(super) from: Option<(u64, f64)>,
    /// Count and sum of the batches now.
    pub(super) batches: Option<(u64, f64)>,
}

impl Window {
    /// Looks at `now`.
    pub(super) fn look(&mut self, now: Moment, sight: Sight) -> Seen {
        if let Some((at, seen)) = self.seen
            && at == now
        {
            return seen;
        }
        let between = self.turn(sight.latest);
        self.since = between.map(|(from, _)| from.at);
        let usage = between.and_then(|(from, to)| to.usage_since(&from, sight.cpus));
        let usage = usage.map(|usage| usage.clamp(0.0, 1.0));
        let throttled = between.and_then(|(from, to)| to.throttled_since(&from));
        let seen = Seen {
            cap: sight.cap,
            usage,
            pressed: presses(sight.cap, usage, throttled),
            batch_latency: self.batch_latency(sight),
        };
        self.seen = Some((now, seen));
        seen
    }

    /// Whether the last look saw what was used since `moment` or later, and nothing older.
    pub(super) fn saw_only_since(&self, moment: Moment) -> bool {
        self.since.is_some_and(|since| since >= moment)
    }

    /// The readings that bound the time since the last look, if that is long enough: then the next
    /// time begins.
    fn turn(&mut self, latest: Option<Taken>) -> Option<(Taken, Taken)> {
        let latest = latest?;
        let mark = *self.mark.get_or_insert(latest);
        if latest.restarted_after(&mark) {
            self.mark = Some(latest);
            return None;
        }
        if latest.at.seconds_since(mark.at) < LEAST_SECONDS {
            return None;
        }
        self.mark = Some(latest);
        Some((mark, latest))
    }

    fn batch_latency(&mut self, sight: Sight) -> Option<f64> {
        let now = sight.batches?;
        let mean = mean_between(self.batches.or(sight.from)?, now)?;
        self.batches = Some(now);
        Some(mean)
    }

    /// Begins anew with the latest reading.
    pub(super) fn begin(&mut self, latest: Option<Taken>) {
        self.mark = latest;
    }

    /// Begins anew with another limit: what was seen under the one before says nothing of it.
    pub(super) fn limit_changed(&mut self, latest: Option<Taken>) {
        self.begin(latest);
        self.forget_batches();
    }

    pub(super) fn forget_batches(&mut self) {
        self.batches = None;
    }
}
