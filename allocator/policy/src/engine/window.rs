//! The observations of a job between two ticks of the limiter.

use super::reading::TimedReading;
use crate::limiter::is_pressed;
use crate::signal::mean_between;
use crate::unit::{Moment, Share};

/// The shortest window, in seconds, over which usage is meaningful: a cap works in periods of a tenth
/// of a second.
const MIN_SECONDS: f64 = 0.5;

/// The state of the window as of the last tick.
#[derive(Debug, Default)]
pub(super) struct Window {
    mark: Option<TimedReading>,
    /// Count and sum of the batches as of the last tick that measured some.
    batches: Option<(u64, f64)>,
    /// The last tick and its sample. A second tick at the same moment returns the same sample.
    sample: Option<(Moment, WindowSample)>,
    /// The start of the last sample's usage window; `None` if it had no usage.
    since: Option<Moment>,
}

/// A tick's sample. `None` means not measured since the last tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSample {
    /// The cap in force then.
    pub(super) cap: Share,
    pub(super) usage: Option<f64>,
    pub(super) pressed: bool,
    pub(super) batch_latency: Option<f64>,
}

/// The data from which a sample is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowInput {
    pub(super) cap: Share,
    pub(super) cpus: f64,
    pub(super) latest: Option<TimedReading>,
    /// Count and sum of the batches at the start of the count.
    pub(super) from: Option<(u64, f64)>,
    /// Count and sum of the batches now.
    pub(super) batches: Option<(u64, f64)>,
}

impl Window {
    /// Takes a sample at `now`.
    pub(super) fn tick(&mut self, now: Moment, input: WindowInput) -> WindowSample {
        if let Some((at, sample)) = self.sample
            && at == now
        {
            return sample;
        }
        let between = self.advance(input.latest);
        self.since = between.map(|(from, _)| from.at);
        let usage = between.and_then(|(from, to)| to.usage_since(&from, input.cpus));
        let usage = usage.map(|usage| usage.clamp(0.0, 1.0));
        let throttled = between.and_then(|(from, to)| to.throttled_since(&from));
        let sample = WindowSample {
            cap: input.cap,
            usage,
            pressed: is_pressed(input.cap, usage, throttled),
            batch_latency: self.batch_latency(input),
        };
        self.sample = Some((now, sample));
        sample
    }

    /// Whether the last sample's usage is entirely from after `moment`.
    pub(super) fn sampled_only_since(&self, moment: Moment) -> bool {
        self.since.is_some_and(|since| since >= moment)
    }

    /// The readings that bound the window, if it is long enough. Then the next window starts.
    fn advance(&mut self, latest: Option<TimedReading>) -> Option<(TimedReading, TimedReading)> {
        let latest = latest?;
        let mark = *self.mark.get_or_insert(latest);
        if latest.restarted_after(&mark) {
            self.mark = Some(latest);
            return None;
        }
        if latest.at.seconds_since(mark.at) < MIN_SECONDS {
            return None;
        }
        self.mark = Some(latest);
        Some((mark, latest))
    }

    fn batch_latency(&mut self, input: WindowInput) -> Option<f64> {
        let now = input.batches?;
        let mean = mean_between(self.batches.or(input.from)?, now)?;
        self.batches = Some(now);
        Some(mean)
    }

    /// Restarts with the latest reading.
    pub(super) fn begin(&mut self, latest: Option<TimedReading>) {
        self.mark = latest;
    }

    /// Restarts after a change of limit, since older measurements do not apply to the new limit.
    pub(super) fn limit_changed(&mut self, latest: Option<TimedReading>) {
        self.begin(latest);
        self.forget_batches();
    }

    pub(super) fn forget_batches(&mut self) {
        self.batches = None;
    }
}
