//! The shares of each job over a run, for charts.

/// More moments than a chart as wide as a page can show.
const MAX_POINTS: usize = 1200;

/// The distance of moments after half of them are dropped, as a multiple of their mean distance
/// before. A factor of 2 would keep in step with patterns that recur with every second change, and
/// show nothing else.
const THINNING_FACTOR: f64 = 2.1;

/// The state of a run over time; each state holds until the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Moments of change, in order. In a run with more changes than a chart can show, they are the
    /// states at evenly spaced moments.
    pub moments: Vec<Moment>,
    /// When the run ended, in seconds.
    pub until: f64,
}

/// The jobs' shares from some moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When that was, in seconds since the run began.
    pub at: f64,
    /// The jobs present, by number.
    pub jobs: Vec<Held>,
}

/// One job's share and limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Its number: its index in [`Outcome::jobs`](crate::Outcome::jobs).
    pub job: usize,
    /// The CPU that it got, as a fraction of all nodes.
    pub share: f64,
    /// Its limit, as a fraction of its own node.
    pub limit: f64,
    /// The set into which its policy had put it; `-` if there is none.
    pub class: &'static str,
}

impl Trace {
    /// Each moment with the time at which it ended.
    pub fn spans(&self) -> impl Iterator<Item = (&Moment, f64)> {
        let ends = self.moments.iter().skip(1).map(|moment| moment.at).chain([self.until]);
        self.moments.iter().zip(ends)
    }
}

/// Records states, and thins them where there are too many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    moments: Vec<Moment>,
    /// The least distance between moments: 0 while there is room for all.
    gap: f64,
    /// The next state to record is the one at this moment.
    due: f64,
}

impl Recorder {
    /// Whether the state from `from` to `to` must be recorded.
    pub(crate) fn wants(&self, from: f64, to: f64) -> bool {
        to > from.max(self.due)
    }

    /// Records the state from `from` on.
    pub(crate) fn note(&mut self, from: f64, jobs: Vec<Held>) {
        let at = from.max(self.due);
        self.due = at + self.gap;
        if self.moments.last().is_some_and(|last| last.jobs == jobs) {
            return;
        }
        self.moments.push(Moment { at, jobs });
        if self.moments.len() > MAX_POINTS {
            self.thin(at);
        }
    }

    /// The trace of a run that ended at `until`.
    pub(crate) fn end(self, until: f64) -> Trace {
        Trace { moments: self.moments, until }
    }

    /// Drops half of the moments: of those that are too close together the last is kept, since it
    /// lasted.
    fn thin(&mut self, now: f64) {
        let room = paceline_policy::unit::count(MAX_POINTS);
        self.gap = if self.gap > 0.0 { 2.0 * self.gap } else { THINNING_FACTOR * now / room };
        let gap = self.gap;
        let stretch = |moment: &Moment| crate::number::floor(moment.at / gap);
        let mut moments = std::mem::take(&mut self.moments).into_iter().peekable();
        while let Some(moment) = moments.next() {
            let lasts = moments.peek().is_none_or(|next| stretch(next) != stretch(&moment));
            if lasts {
                self.moments.push(moment);
            }
        }
        self.due = now + gap;
    }
}

#[cfg(test)]
mod tests;
