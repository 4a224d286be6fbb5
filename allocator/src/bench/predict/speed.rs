//! How fast the machine was in each run, as far as jobs felt it.
//!
//! The probe's speed goes up and down with the machine's, but not as the jobs' does. It has a level of its own
//! for each number of jobs that run, since CPUs that were idle are slow for a while; what many jobs cost each
//! other is fitted beside that. And what waits for memory and what computes are held up by different
//! neighbours: how much of the rest jobs feel is told by how long their batches took under `none` when the
//! probe was above its level and below, beside as many others.

mod course;
mod felt;

use std::collections::BTreeMap;

use course::pieces;

use super::super::outcome::Observed;
use super::super::record::Run;

/// For so many seconds a number of jobs must have run to have a level that is half its own.
const A_WHILE: f64 = 10.0;

/// What is known of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Speed {
    levels: Levels,
    /// The part of the probe's changes that jobs feel, in logarithms.
    pub(super) felt: f64,
}

impl Speed {
    /// Of the runs that were `fitted`.
    pub(super) fn of(fitted: &[&Observed<'_>]) -> Self {
        let levels = Levels::of(fitted.iter().map(|run| &run.recorded.run));
        let felt = felt::felt(
            &fitted.iter().flat_map(|run| felt::blocks(run, &levels)).collect::<Vec<_>>(),
        );
        Self { levels, felt }
    }

    /// How fast a machine was for a job alone when the probe found it to be as fast as `then`, as a part of
    /// what it was for jobs in the runs that were fitted.
    pub(super) fn alone(&self, then: f64) -> Option<f64> {
        let level = Some(then).filter(|then| *then > 0.0).zip(self.levels.of_jobs(1));
        level.map(|(then, level)| (self.felt * (then.ln() - level)).exp())
    }

    /// The same in the course of a run, from so many seconds after it began on.
    pub(super) fn course(&self, run: &Run) -> Vec<(f64, f64)> {
        let above = self.levels.above(run).into_iter();
        above.map(|(from, _, above)| (from, (self.felt * above).exp())).collect()
    }
}

/// The probe's speed by the number of jobs that ran, in logarithms: for each the seconds, and their sum.
#[derive(Clone, Debug, PartialEq)]
struct Levels(BTreeMap<usize, (f64, f64)>);

impl Levels {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let mut levels: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for piece in runs.flat_map(pieces) {
            let (seconds, sum) = levels.entry(piece.jobs).or_default();
            *seconds += piece.to - piece.from;
            *sum += (piece.to - piece.from) * piece.passes.ln();
        }
        Self(levels)
    }

    /// That of so many jobs, and of all numbers together as far as too little is known of it; `None` if no
    /// probe beat.
    fn of_jobs(&self, jobs: usize) -> Option<f64> {
        let all = self.0.values().fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
        let usual = Some(all).filter(|all| all.0 > 0.0).map(|(seconds, sum)| sum / seconds)?;
        let (seconds, sum) = self.0.get(&jobs).copied().unwrap_or_default();
        Some((sum + A_WHILE * usual) / (seconds + A_WHILE))
    }

    /// How far the probe was above its level in the course of a run: from, to, and by how much.
    fn above(&self, run: &Run) -> Vec<(f64, f64, f64)> {
        let above = |piece: course::Piece| {
            Some((piece.from, piece.to, piece.passes.ln() - self.of_jobs(piece.jobs)?))
        };
        pieces(run).into_iter().filter_map(above).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::example::recorded;
    use super::super::super::record::Beat;
    use super::*;

    fn run(beats: &[(f64, f64)]) -> Run {
        let jobs = [("a", 0.0, 60.0), ("b", 20.0, 40.0)];
        let mut run = recorded("none", 1, &jobs, []).run;
        run.beats = beats.iter().map(|&(t, passes)| Beat { t, passes }).collect();
        run
    }

    #[test]
    fn what_the_probe_has_by_the_number_of_jobs_is_no_change_of_the_machine() {
        let runs = vec![run(&[(0.0, 100.0), (20.0, 150.0), (40.0, 100.0)]); 20];
        let levels = Levels::of(runs.iter());
        assert!((levels.of_jobs(1).unwrap().exp() - 100.0).abs() < 1.0, "{levels:?}");
        assert!((levels.of_jobs(2).unwrap().exp() - 150.0).abs() < 3.0, "{levels:?}");
        let speed = Speed { levels, felt: 1.0 };
        assert!(speed.course(&runs[0]).iter().all(|(_, speed)| (speed - 1.0).abs() < 0.02));
        let slower = speed.course(&run(&[(0.0, 100.0), (20.0, 75.0), (30.0, 150.0), (40.0, 50.0)]));
        let expected = [(0.0, 1.0), (20.0, 0.5), (30.0, 1.0), (40.0, 0.5)];
        assert_eq!(slower.len(), expected.len());
        for ((at, speed), (from, known)) in slower.iter().zip(expected) {
            assert!((at - from).abs() < 1e-9 && (speed - known).abs() < 0.02, "{slower:?}");
        }
    }

    #[test]
    fn a_number_of_jobs_that_hardly_ran_has_the_level_of_all() {
        let levels = Levels::of([run(&[(0.0, 100.0), (20.0, 200.0), (20.1, 100.0)])].iter());
        assert!((levels.of_jobs(7).unwrap() - levels.of_jobs(1).unwrap()).abs() < 0.05);
        assert_eq!(Levels::of(std::iter::empty()).of_jobs(1), None);
    }
}
