//! A run as pieces of time with one speed of the probe and one number of jobs.

use super::super::super::record::{JobRun, Run};

/// One piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// In seconds after the run began.
    pub(super) from: f64,
    pub(super) to: f64,
    /// The probe's last speed.
    pub(super) passes: f64,
    /// How many jobs had arrived and not ended.
    pub(super) jobs: usize,
}

/// The pieces from the first sample of the probe to the end of the last job.
pub(super) fn pieces(run: &Run) -> Vec<Piece> {
    let samples = || run.speed_samples.iter().filter(|sample| sample.passes > 0.0);
    let end = run.jobs.iter().map(|job| job.ended).fold(f64::NEG_INFINITY, f64::max);
    let Some(first) = samples().map(|sample| sample.t).reduce(f64::min) else { return Vec::new() };
    let changes = run.jobs.iter().flat_map(|job| [job.arrived, job.ended]);
    let mut cuts: Vec<f64> = samples().map(|sample| sample.t).chain(changes).chain([end]).collect();
    cuts.retain(|cut| (first..=end).contains(cut));
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    let piece = |cut: &[f64]| {
        let [from, to] = *cut else { return None };
        let sample =
            samples().filter(|sample| sample.t <= from).max_by(|a, b| a.t.total_cmp(&b.t))?;
        let there = |job: &&JobRun| job.arrived <= from && from < job.ended;
        Some(Piece { from, to, passes: sample.passes, jobs: run.jobs.iter().filter(there).count() })
    };
    cuts.windows(2).filter_map(piece).collect()
}
