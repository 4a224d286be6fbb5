//! A run as pieces of time with one speed of the probe and one number of jobs.

use super::super::super::record::{JobRun, Run};

/// One of them.
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

/// From the first beat to the end of the last job.
pub(super) fn pieces(run: &Run) -> Vec<Piece> {
    let beats = || run.beats.iter().filter(|beat| beat.passes > 0.0);
    let end = run.jobs.iter().map(|job| job.ended).fold(f64::NEG_INFINITY, f64::max);
    let Some(first) = beats().map(|beat| beat.t).reduce(f64::min) else { return Vec::new() };
    let changes = run.jobs.iter().flat_map(|job| [job.arrived, job.ended]);
    let mut cuts: Vec<f64> = beats().map(|beat| beat.t).chain(changes).chain([end]).collect();
    cuts.retain(|cut| (first..=end).contains(cut));
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    let piece = |cut: &[f64]| {
        let [from, to] = *cut else { return None };
        let beat = beats().filter(|beat| beat.t <= from).max_by(|a, b| a.t.total_cmp(&b.t))?;
        let there = |job: &&JobRun| job.arrived <= from && from < job.ended;
        Some(Piece { from, to, passes: beat.passes, jobs: run.jobs.iter().filter(there).count() })
    };
    cuts.windows(2).filter_map(piece).collect()
}
