//! What a job did in the windows of one recording.

use super::learning::Piece;
use super::speed::Speeds;
use super::window::Window;
use super::{Lifetime, ROUNDING};
use crate::scenario::ReachedAt;

/// What a job did in the windows of its recording.
pub(super) struct Trajectory {
    pub(super) work: f64,
    pub(super) cpu: f64,
    /// The work done when it reported that it had reached its targets.
    acceptable: Option<f64>,
    objective: Option<f64>,
    /// The work before and after each window with a loss, and that loss.
    pub(super) losses: Vec<(f64, f64, f64)>,
}

impl Trajectory {
    pub(super) fn new(life: &Lifetime, windows: &[Window<'_>], speeds: &Speeds) -> Self {
        let mut trajectory =
            Self { work: 0.0, cpu: 0.0, acceptable: None, objective: None, losses: Vec::new() };
        for window in windows {
            let Some(part) = window.jobs.get(&life.id) else { continue };
            let before = trajectory.work;
            trajectory.work += window.seconds * speeds.rate(&life.id, part, window.neighbours());
            trajectory.cpu += window.seconds * part.share;
            let begin = window.end - window.seconds;
            let reached = |at: Option<f64>| {
                let at = at.filter(|at| *at <= window.end)?;
                Some(if at > begin { trajectory.work } else { before })
            };
            let (acceptable, objective) = (reached(life.acceptable), reached(life.objective));
            trajectory.acceptable = trajectory.acceptable.or(acceptable);
            trajectory.objective = trajectory.objective.or(objective);
            if let Some(loss) = part.loss.filter(|_| trajectory.work > before) {
                trajectory.losses.push((before, trajectory.work, loss));
            }
        }
        trajectory
    }

    /// When the job reported its targets, as parts of its work. A job that ended without reporting
    /// a target never reaches it.
    pub(super) fn reached_at(&self, life: &Lifetime) -> ReachedAt {
        let never = life.ended.map(|_| f64::INFINITY);
        let part = |work: Option<f64>| work.map(|work| work / self.work).or(never);
        ReachedAt { acceptable: part(self.acceptable), objective: part(self.objective) }
    }
}

/// The losses of windows as pieces of `work`, in batches of size `batch`. Windows beyond `work` are
/// left out.
pub(super) fn by_work(losses: &[(f64, f64, f64)], work: f64, batch: f64) -> Vec<Piece> {
    let within = losses.iter().filter(|(_, to, _)| *to <= work * (1.0 + ROUNDING));
    let piece = |&(from, to, loss): &(f64, f64, f64)| Piece {
        from: from / work,
        to: to / work,
        loss,
        batches: (to - from) / batch,
    };
    within.map(piece).collect()
}
