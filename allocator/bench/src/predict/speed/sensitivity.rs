//! The speed sensitivity: the part of the probe's changes that jobs follow.

use std::collections::BTreeMap;

use paceline_policy::{Frame, JobId};

use super::super::super::outcome::Observed;
use super::Levels;

/// The relative noise of batch durations over a minute at constant speed. Until speeds differ by more, the
/// sensitivity is assumed to be 1.
const NOISE: f64 = 0.05;
const MINUTE: f64 = 60.0;

/// The shortest block: the probe's samples and batches are noisy, so both are averaged over a block.
const MIN_BLOCK_SECONDS: f64 = 6.0;

/// Some seconds of a job, with a constant number of jobs beside it.
#[derive(Clone, Debug)]
pub(super) struct Block {
    job: JobId,
    jobs: usize,
    seconds: f64,
    /// How far the probe was above its level, in logarithms.
    above: f64,
    /// The negative logarithm of the CPU time that a batch took.
    faster: f64,
}

/// The blocks of a run, found for each node: only jobs on its own node affect a job.
pub(super) fn blocks(run: &Observed<'_>, levels: &Levels) -> Vec<Block> {
    let (Ok(recording), Some(offset)) = (&run.frames, run.offset()) else { return Vec::new() };
    let above = levels.above(&run.recorded.run);
    let nodes = recording.nodes().into_iter().filter_map(|node| recording.on(node));
    nodes.flat_map(|frames| blocks_on(frames.frames(), offset, &above)).collect()
}

fn blocks_on(frames: &[Frame], offset: f64, above: &[(f64, f64, f64)]) -> Vec<Block> {
    let mut open: BTreeMap<&JobId, Block> = BTreeMap::new();
    let mut found = Vec::new();
    for (before, after) in frames.iter().zip(frames.iter().skip(1)) {
        let Some((seconds, above)) = mean(above, (before.t + offset, after.t + offset)) else {
            continue;
        };
        for (job, faster) in timed(before, after) {
            let jobs = after.jobs.len();
            let window = Block { job: job.clone(), jobs, seconds, above, faster };
            let block = match open.remove(job) {
                Some(block) if block.jobs == jobs => block.with(&window),
                _ => window,
            };
            if block.seconds < MIN_BLOCK_SECONDS {
                open.insert(job, block);
            } else {
                found.push(block);
            }
        }
    }
    found
}

impl Block {
    /// Both blocks as one, with means weighted by length.
    fn with(mut self, other: &Self) -> Self {
        let seconds = self.seconds + other.seconds;
        let both = |own: f64, its: f64| (own * self.seconds + its * other.seconds) / seconds;
        (self.above, self.faster) =
            (both(self.above, other.above), both(self.faster, other.faster));
        Self { seconds, ..self }
    }
}

/// The jobs with batches timed between two frames; none if a job came or went.
fn timed<'a>(before: &Frame, after: &'a Frame) -> impl Iterator<Item = (&'a JobId, f64)> {
    let stay = before.jobs.len() == after.jobs.len()
        && after.jobs.iter().all(|job| before.jobs.iter().any(|own| own.id == job.id));
    let jobs = after.jobs.iter().filter(move |_| stay);
    jobs.filter_map(|job| {
        let cpu_seconds = job.batch_latency? * job.usage.cpu?;
        Some((&job.id, -cpu_seconds.ln())).filter(|(_, faster)| faster.is_finite())
    })
}

/// The seconds of a span that `steps` cover, and the mean over them.
fn mean(steps: &[(f64, f64, f64)], (from, to): (f64, f64)) -> Option<(f64, f64)> {
    let (mut seconds, mut sum) = (0.0, 0.0);
    for (begin, end, value) in steps {
        let part = (end.min(to) - begin.max(from)).max(0.0);
        seconds += part;
        sum += part * value;
    }
    (seconds > 0.0).then(|| (seconds, sum / seconds))
}

/// Fits the sensitivity by least squares over blocks of the same job and number of jobs. A prior of 1 counts
/// less the more the speeds differ.
pub(super) fn fit(blocks: &[Block]) -> f64 {
    let mut groups: BTreeMap<(&JobId, usize), (f64, f64, f64)> = BTreeMap::new();
    for block in blocks {
        let (seconds, above, faster) = groups.entry((&block.job, block.jobs)).or_default();
        *seconds += block.seconds;
        *above += block.seconds * block.above;
        *faster += block.seconds * block.faster;
    }
    let (mut both, mut own) = (NOISE * NOISE * MINUTE, NOISE * NOISE * MINUTE);
    for block in blocks {
        let Some((seconds, above, faster)) = groups.get(&(&block.job, block.jobs)) else {
            continue;
        };
        let (above, faster) = (block.above - above / seconds, block.faster - faster / seconds);
        both += block.seconds * above * faster;
        own += block.seconds * above * above;
    }
    (both / own).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(job: &str, jobs: usize, above: f64, faster: f64) -> Block {
        Block { job: JobId::new(job).unwrap(), jobs, seconds: 8.0, above, faster }
    }

    #[test]
    fn blocks_of_one_speed_leave_the_prior() {
        assert!((fit(&[]) - 1.0).abs() < 1e-9);
        assert!((fit(&[block("a", 1, 0.0, 3.0), block("a", 1, 0.0, 3.2)]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn differences_between_jobs_do_not_count_as_speed() {
        let alike = |job, jobs, faster| [-0.2, 0.2].map(|above| block(job, jobs, above, faster));
        let blocks = [alike("a", 1, 3.0), alike("a", 2, 2.5), alike("b", 2, 5.0)].concat();
        let found = fit(&blocks.iter().cycle().take(60).cloned().collect::<Vec<_>>());
        assert!(found < 0.05, "{found}");
    }

    proptest! {
        #[test]
        fn sensitivity_is_found_from_differing_speeds(
            part in 0.0..1.0_f64, speeds in prop::collection::vec(-0.3..0.3_f64, 20..40),
        ) {
            let blocks: Vec<Block> =
                speeds.iter().map(|above| block("a", 2, *above, 4.0 + part * above)).collect();
            let spread = |speeds: &[f64]| {
                let mean = speeds.iter().sum::<f64>() / f64::from(u32::try_from(speeds.len()).unwrap());
                speeds.iter().map(|speed| (speed - mean).powi(2)).sum::<f64>()
            };
            prop_assume!(spread(&speeds) > 0.2);
            let found = fit(&blocks);
            // The prior of 1 raises the result a little.
            prop_assert!((part - 1e-9..part + 0.15).contains(&found), "{found} of {part}");
        }
    }
}
