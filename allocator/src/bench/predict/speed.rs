//! How fast the machine was in each run, as far as jobs felt it.
//!
//! The probe's speed goes up and down with the machine's, but not as the jobs' does: what waits for memory
//! and what computes are held up by different neighbours. How much of its ups and downs they feel is told
//! by the CPU time that the same jobs took under `none` when it had one speed and another.

use paceline_policy::unit::count;
use paceline_sim::fit::fit;

use super::super::outcome::{Ground, Observed, mean};
use super::super::record::{Beat, Host};

/// Runs of one speed differ by so much all the same, as a part of their CPU time, where arrivals are drawn:
/// until speeds differ by more, jobs are taken to feel all of it.
const NOISE: f64 = 0.05;

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// The probe's in the runs that were fitted, on average.
    fitted: Option<f64>,
    /// The part of its changes that jobs feel, in logarithms.
    pub(super) felt: f64,
}

impl Speed {
    /// Of the runs that were `fitted`, and all of the same arm among those `observed` that nothing
    /// disturbed: the warm-up is one.
    pub(super) fn of(fitted: &[&Observed<'_>], observed: &[Observed<'_>], ground: &Ground) -> Self {
        let is_fitted = |arm: &str| fitted.iter().any(|run| run.recorded.run.arm == arm);
        let runs = observed.iter().filter(|run| is_fitted(&run.recorded.run.arm));
        let runs = runs.filter(|run| run.recorded.run.host.spoiled.is_none());
        let known = runs
            .filter_map(|run| Some((probed(&run.recorded.run.host)?, cpu_seconds(run, ground)?)));
        let speeds = fitted.iter().map(|run| Some(probed(&run.recorded.run.host)?.ln()));
        let logarithms: Option<Vec<f64>> = speeds.collect();
        Self {
            fitted: logarithms.and_then(|all| mean(&all)).map(f64::exp),
            felt: felt(&known.collect::<Vec<_>>()),
        }
    }

    /// How fast a machine was for jobs when the probe found it to be as fast as `then`, as a part of what it
    /// was for them in the runs that were fitted.
    pub(super) fn of_jobs(&self, then: f64) -> Option<f64> {
        let both = Some(then).filter(|then| *then > 0.0).zip(self.fitted);
        both.map(|(then, fitted)| (then / fitted).powf(self.felt))
    }

    /// The same in the course of a run, from so many seconds after it began on.
    pub(super) fn course(&self, beats: &[Beat]) -> Vec<(f64, f64)> {
        beats.iter().filter_map(|beat| Some((beat.t, self.of_jobs(beat.passes)?))).collect()
    }
}

fn probed(host: &Host) -> Option<f64> {
    host.speed.filter(|speed| *speed > 0.0)
}

/// What the jobs took that came to their own end; `None` if one of them did not: then it is not the same
/// work in each run.
fn cpu_seconds(run: &Observed<'_>, ground: &Ground) -> Option<f64> {
    if run.recorded.run.jobs.iter().any(|its| ground.is_stopped(its)) {
        return None;
    }
    let jobs = fit(run.frames.as_ref().ok()?, &[]).ok()?.jobs;
    let all = jobs.len() == run.recorded.run.jobs.len();
    all.then(|| jobs.iter().map(|job| job.cpu).sum()).filter(|seconds| *seconds > 0.0)
}

/// The part of the probe's changes that runs of such speeds and CPU seconds felt: of 1, and of what
/// least squares say, each counts by what there is to be seen.
fn felt(runs: &[(f64, f64)]) -> f64 {
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / count(runs.len());
    let (speed, took) = (mean(|run| run.0.ln()), mean(|run| run.1.ln()));
    let (mut both, mut own) = (NOISE * NOISE, NOISE * NOISE);
    for run in runs {
        let (faster, shorter) = (run.0.ln() - speed, took - run.1.ln());
        both += faster * shorter;
        own += faster * faster;
    }
    (both / own).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_of_one_speed_tell_nothing() {
        assert!((felt(&[]) - 1.0).abs() < 1e-9);
        assert!((felt(&[(3e4, 50.0), (3e4, 51.0)]) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn what_jobs_feel_is_told_by_speeds_that_differ(
            part in 0.0..1.0_f64, speeds in prop::collection::vec(2e4..4e4_f64, 3..6),
        ) {
            let took = |speed: f64| 50.0 * (speed / 3e4_f64).powf(-part);
            let runs: Vec<(f64, f64)> = speeds.iter().map(|speed| (*speed, took(*speed))).collect();
            let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
            let fastest = speeds.iter().copied().fold(0.0, f64::max);
            prop_assume!(fastest > 1.2 * slowest);
            let found = felt(&runs);
            // Of the part that they do not feel, what is taken for granted counts a little.
            prop_assert!((part - 1e-9..part + 0.15).contains(&found), "{found} of {part}");
        }
    }
}
