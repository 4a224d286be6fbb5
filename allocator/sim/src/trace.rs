//! What each job had over a run, as a picture shows it.

/// So many moments are more than a picture across a page can show.
const MOST: usize = 1200;

/// How far apart moments are when half of them are to go, as a multiple of their mean distance. Twice
/// that would be in step with whatever comes round with every second change, and show no other.
const HALVES: f64 = 2.1;

/// A run over time: what was so from each moment on, until the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Moments of change, in the order of their time. In a run of more changes than a picture can
    /// show, they are the states at moments that lie evenly apart.
    pub moments: Vec<Moment>,
    /// When the run ended, in seconds.
    pub until: f64,
}

/// What the jobs had from some moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When that was, in seconds since the run began.
    pub at: f64,
    /// The jobs that were there, by number.
    pub jobs: Vec<Held>,
}

/// What one job had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Its number: its place in [`Outcome::jobs`](crate::Outcome::jobs).
    pub job: usize,
    /// The CPU that it got, as a fraction of what all nodes have.
    pub share: f64,
    /// Its limit, as a fraction of its own node.
    pub limit: f64,
    /// The set that its policy had put it into; `-` where there is none.
    pub class: &'static str,
}

impl Trace {
    /// Each moment with the one at which it was over.
    pub fn spans(&self) -> impl Iterator<Item = (&Moment, f64)> {
        let ends = self.moments.iter().skip(1).map(|moment| moment.at).chain([self.until]);
        self.moments.iter().zip(ends)
    }
}

/// Takes states down as they come, and no more of them than are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    moments: Vec<Moment>,
    /// How far apart moments are at least: 0 as long as there is room for all.
    gap: f64,
    /// The state at this moment is the next to be taken down.
    due: f64,
}

impl Recorder {
    /// Whether the state from `from` to `to` is to be taken down.
    pub(crate) fn wants(&self, from: f64, to: f64) -> bool {
        to > from.max(self.due)
    }

    /// Takes down what was so from `from` on.
    pub(crate) fn note(&mut self, from: f64, jobs: Vec<Held>) {
        let at = from.max(self.due);
        self.due = at + self.gap;
        if self.moments.last().is_some_and(|last| last.jobs == jobs) {
            return;
        }
        self.moments.push(Moment { at, jobs });
        if self.moments.len() > MOST {
            self.thin(at);
        }
    }

    /// The trace of a run that ended at `until`.
    pub(crate) fn end(self, until: f64) -> Trace {
        Trace { moments: self.moments, until }
    }

    /// Leaves half of the moments: of those that are too near each other the last, which is the
    /// one that lasted.
    fn thin(&mut self, now: f64) {
        let room = paceline_policy::unit::count(MOST);
        self.gap = if self.gap > 0.0 { 2.0 * self.gap } else { HALVES * now / room };
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
