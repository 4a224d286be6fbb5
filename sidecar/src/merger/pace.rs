//! Batch latency: reported by the source, or inferred from the times of its lines.

use std::mem;

use paceline_lines::number::float;

use super::LatencyFrom;

/// Lines within this many seconds of each other form a group.
const TOGETHER: f64 = 0.002;
/// A group of at least so many lines, after so many seconds of silence, is a flushed buffer.
const BLOCK: (u64, f64) = (8, 0.5);
/// Number of blocks in a row after which the source is reported as block-buffered.
const BLOCKS: u32 = 3;

/// The batch latency of one process.
#[derive(Debug, Default)]
pub(super) struct Pace {
    reported: Reported,
    inferred: bool,
    /// The end of the group before the last one.
    mark: Option<Mark>,
    /// The last group of lines.
    group: Option<Group>,
    /// Something other than steps, such as a validation, has taken time since the last group.
    paused: bool,
    /// Intervals between groups so far. The first one includes the start of the job.
    intervals: u64,
    blocks: u32,
    count: u64,
    sum: f64,
}

/// Whether the source reports latencies. The first one is not used: it includes one-time work, such as loading,
/// compiling and allocating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reported {
    #[default]
    None,
    /// The first one came without a value.
    First,
    /// There was one, so inferred ones are ignored.
    Some,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: f64,
    step: u64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    mark: Mark,
    lines: u64,
    /// Something other than steps came before it.
    paused: bool,
}

impl Pace {
    /// The next step comes after something other than steps.
    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// The first latency was that of an earlier line, which has not reported it.
    pub(super) fn warm_up(&mut self) {
        if self.reported == Reported::None {
            self.reported = Reported::First;
        }
    }

    /// Takes a line that arrived at `at` in seconds, if that is known, with its step and its reported latency,
    /// if it has them. Returns the duration of a batch in seconds, once it is known. With `paused`, the
    /// line is about something other than steps.
    pub(super) fn took(
        &mut self,
        reported: Option<f64>,
        step: Option<u64>,
        at: Option<f64>,
        paused: bool,
    ) -> Option<f64> {
        let inferred = match at {
            _ if paused => {
                self.paused = true;
                None
            }
            Some(at) => self.infer(step, at),
            None => {
                (self.mark, self.group, self.intervals) = (None, None, 0);
                None
            }
        };
        let took = match reported.filter(|took| took.is_finite() && *took > 0.0) {
            Some(took) => {
                let before = mem::replace(&mut self.reported, Reported::Some);
                Some(took).filter(|_| before != Reported::None)
            }
            None => inferred.filter(|_| self.reported != Reported::Some),
        }?;
        self.inferred = self.reported != Reported::Some;
        self.count += 1;
        self.sum += took;
        Some(took)
    }

    /// The time per step up to the previous group, which only now is known to be complete.
    fn infer(&mut self, step: Option<u64>, at: f64) -> Option<f64> {
        let Some(group) = &mut self.group else {
            self.group = Some(Group::new(at, step.unwrap_or(1), false));
            return None;
        };
        // A line without a step counts as one step.
        let step = step.unwrap_or(group.mark.step.saturating_add(1));
        if (at - group.mark.at).abs() < TOGETHER {
            group.lines += 1;
            group.mark.step = step;
            return None;
        }
        let done = *group;
        let before = self.mark.replace(done.mark);
        self.group = Some(Group::new(at, step, mem::take(&mut self.paused)));
        let before = before?;
        self.intervals += 1;
        let seconds = done.mark.at - before.at;
        let steps = done.mark.step.checked_sub(before.step).filter(|steps| *steps > 0)?;
        let in_block = done.lines >= BLOCK.0 && seconds >= BLOCK.1;
        self.blocks = if in_block { self.blocks.saturating_add(1) } else { 0 };
        let counts = seconds > 0.0 && self.intervals > 1 && !done.paused;
        counts.then(|| seconds / float(steps))
    }

    /// The origin of the latencies, once there are any.
    pub(super) fn from(&self) -> Option<LatencyFrom> {
        if self.reported == Reported::Some {
            Some(LatencyFrom::Reported)
        } else {
            self.inferred.then_some(LatencyFrom::Inferred)
        }
    }

    /// Whether lines arrive in blocks.
    pub(super) fn in_blocks(&self) -> bool {
        self.blocks >= BLOCKS
    }

    /// Number of batches whose latency is known.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The sum of their latencies in seconds.
    pub(super) fn sum(&self) -> f64 {
        self.sum
    }
}

impl Group {
    fn new(at: f64, step: u64, paused: bool) -> Self {
        Self { mark: Mark { at, step }, lines: 1, paused }
    }
}
