//! How long batches take, as the source says or as its lines come.

use std::mem;

use super::LatencyFrom;

/// Lines that come within this time of each other came together, in seconds.
const TOGETHER: f64 = 0.002;
/// So many lines together, after so many seconds of silence, are a block of a buffer.
const BLOCK: (u64, f64) = (8, 0.5);
/// So many blocks in a row, and it is said.
const BLOCKS: u32 = 3;

/// The pace of one process.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// A latency was reported: what is inferred is not wanted.
    reported: bool,
    inferred: bool,
    /// The end of the lines before the last ones.
    mark: Option<Mark>,
    /// The last lines, which came together.
    group: Option<Group>,
    /// Something else than steps has come since the last lines, which took time of its own.
    paused: bool,
    /// Times between groups that were seen: the first holds the start of the job.
    intervals: u64,
    blocks: u32,
    count: u64,
    sum: f64,
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
    /// Something else than steps came before it.
    paused: bool,
}

impl Pace {
    /// Takes a line that came at `at`, at `step` if that is known, and that may say how long a batch
    /// takes. Returns how long one took, in seconds, once that is known. With `paused`, the line is
    /// about something else than steps.
    pub(super) fn took(
        &mut self,
        reported: Option<f64>,
        step: Option<u64>,
        at: f64,
        paused: bool,
    ) -> Option<f64> {
        let inferred = if paused {
            self.paused = true;
            None
        } else {
            self.infer(step, at)
        };
        let took = match reported.filter(|took| took.is_finite() && *took > 0.0) {
            Some(took) => {
                // The first holds what happens once: loading, compiling, allocating.
                let warm = self.reported;
                self.reported = true;
                Some(took).filter(|_| warm)
            }
            None => inferred.filter(|_| !self.reported),
        }?;
        self.inferred = !self.reported;
        self.count += 1;
        self.sum += took;
        Some(took)
    }

    /// The time per step up to the lines before this one: they are complete only now.
    fn infer(&mut self, step: Option<u64>, at: f64) -> Option<f64> {
        let Some(group) = &mut self.group else {
            self.group = Some(Group::new(at, step.unwrap_or(1), false));
            return None;
        };
        // A line without a step is one.
        let step = step.unwrap_or(group.mark.step + 1);
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

    /// Where latencies come from, once there are any.
    pub(super) fn from(&self) -> Option<LatencyFrom> {
        if self.reported {
            Some(LatencyFrom::Reported)
        } else {
            self.inferred.then_some(LatencyFrom::Inferred)
        }
    }

    /// Whether lines come in blocks.
    pub(super) fn in_blocks(&self) -> bool {
        self.blocks >= BLOCKS
    }

    /// Batches that were told.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Their seconds.
    pub(super) fn sum(&self) -> f64 {
        self.sum
    }
}

impl Group {
    fn new(at: f64, step: u64, paused: bool) -> Self {
        Self { mark: Mark { at, step }, lines: 1, paused }
    }
}

/// Steps between two lines; more than four thousand million are no fewer.
fn float(steps: u64) -> f64 {
    u32::try_from(steps).unwrap_or(u32::MAX).into()
}
