//! How fast the machine was in each run, for the jobs.
//!
//! The probe's speed varies with the machine's, but not exactly as the jobs' speed does. First, it has a
//! separate level for each number of running jobs, because idle CPUs are slow for a while. Contention between
//! jobs is fitted separately. Second, different neighbours slow down memory access and computation. So jobs
//! follow the probe's other changes only in part, the speed sensitivity. It is fitted to the durations of
//! batches under `none`, when the probe was above and below its level for the same number of jobs.

mod pieces;
mod sensitivity;

use std::collections::BTreeMap;

use pieces::pieces;

use super::super::outcome::Observed;
use super::super::record::Run;

/// The weight of the overall level, in seconds: a number of jobs that ran this long has a level that is half
/// its own.
const OVERALL_WEIGHT: f64 = 10.0;

/// The probe's levels, and the jobs' sensitivity to its changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Speed {
    levels: Levels,
    /// The part of the probe's changes that jobs follow, in logarithms: from 0 to 1.
    pub(super) sensitivity: f64,
}

impl Speed {
    /// The speed in the runs that were `fitted`.
    pub(super) fn from_runs(fitted: &[&Observed<'_>]) -> Self {
        let levels = Levels::from_runs(fitted.iter().map(|run| &run.recorded.run));
        let blocks = fitted.iter().flat_map(|run| sensitivity::blocks(run, &levels));
        let sensitivity = sensitivity::fit(&blocks.collect::<Vec<_>>());
        Self { levels, sensitivity }
    }

    /// The machine's speed for a job alone, relative to the fitted runs, when the probe measured `passes` per
    /// second.
    pub(super) fn alone(&self, passes: f64) -> Option<f64> {
        let level = Some(passes).filter(|passes| *passes > 0.0).zip(self.levels.of_jobs(1));
        level.map(|(passes, level)| (self.sensitivity * (passes.ln() - level)).exp())
    }

    /// The same over a run: pairs of seconds after the run began, and the relative speed from then on.
    pub(super) fn over_time(&self, run: &Run) -> Vec<(f64, f64)> {
        let above = self.levels.above(run).into_iter();
        above.map(|(from, _, above)| (from, (self.sensitivity * above).exp())).collect()
    }
}

/// The logarithm of the probe's speed by the number of running jobs: for each number the seconds, and the
/// sum over them.
#[derive(Clone, Debug, PartialEq)]
struct Levels(BTreeMap<usize, (f64, f64)>);

impl Levels {
    fn from_runs<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let mut levels: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for piece in runs.flat_map(pieces) {
            let (seconds, sum) = levels.entry(piece.jobs).or_default();
            *seconds += piece.to - piece.from;
            *sum += (piece.to - piece.from) * piece.passes.ln();
        }
        Self(levels)
    }

    /// The level for this number of jobs, pulled towards the overall level if that number hardly ran. `None`
    /// without samples of the probe.
    fn of_jobs(&self, jobs: usize) -> Option<f64> {
        let all = self.0.values().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
        let usual = Some(all).filter(|all| all.0 > 0.0).map(|(seconds, sum)| sum / seconds)?;
        let (seconds, sum) = self.0.get(&jobs).copied().unwrap_or_default();
        Some((sum + OVERALL_WEIGHT * usual) / (seconds + OVERALL_WEIGHT))
    }

    /// How far the probe was above its level over a run: from, to, and by how much.
    fn above(&self, run: &Run) -> Vec<(f64, f64, f64)> {
        let above = |piece: pieces::Piece| {
            Some((piece.from, piece.to, piece.passes.ln() - self.of_jobs(piece.jobs)?))
        };
        pieces(run).into_iter().filter_map(above).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::example::recorded;
    use super::super::super::record::SpeedSample;
    use super::*;

    fn run(samples: &[(f64, f64)]) -> Run {
        let jobs = [("a", 0.0, 60.0), ("b", 20.0, 40.0)];
        let mut run = recorded("none", 1, &jobs, []).run;
        run.speed_samples = samples.iter().map(|&(t, passes)| SpeedSample { t, passes }).collect();
        run
    }

    #[test]
    fn probe_level_depends_on_the_number_of_jobs() {
        let runs = vec![run(&[(0.0, 100.0), (20.0, 150.0), (40.0, 100.0)]); 20];
        let levels = Levels::from_runs(runs.iter());
        assert!((levels.of_jobs(1).unwrap().exp() - 100.0).abs() < 1.0, "{levels:?}");
        assert!((levels.of_jobs(2).unwrap().exp() - 150.0).abs() < 3.0, "{levels:?}");
        let speed = Speed { levels, sensitivity: 1.0 };
        assert!(speed.over_time(&runs[0]).iter().all(|(_, speed)| (speed - 1.0).abs() < 0.02));
        let slower =
            speed.over_time(&run(&[(0.0, 100.0), (20.0, 75.0), (30.0, 150.0), (40.0, 50.0)]));
        let expected = [(0.0, 1.0), (20.0, 0.5), (30.0, 1.0), (40.0, 0.5)];
        assert_eq!(slower.len(), expected.len());
        for ((at, speed), (from, known)) in slower.iter().zip(expected) {
            assert!((at - from).abs() < 1e-9 && (speed - known).abs() < 0.02, "{slower:?}");
        }
    }

    #[test]
    fn rare_number_of_jobs_has_the_overall_level() {
        let levels = Levels::from_runs([run(&[(0.0, 100.0), (20.0, 200.0), (20.1, 100.0)])].iter());
        assert!((levels.of_jobs(7).unwrap() - levels.of_jobs(1).unwrap()).abs() < 0.05);
        assert_eq!(Levels::from_runs(std::iter::empty()).of_jobs(1), None);
    }
}
