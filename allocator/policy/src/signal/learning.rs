use paceline_wire::Direction;

use crate::frame::Job;
use crate::unit::saturate;
use crate::variant::Variant;

/// The state from which a job's progress is measured.
///
/// FlowCon's Eq. 1 takes |E(t) − E(t−1)| of raw losses. Losses of different jobs differ by orders
/// of magnitude, so progress is divided by the largest absolute loss seen (X4; the authors' code
/// does the same), and it is signed, so that a diverging job does not count as a growing one (X6).
#[derive(Clone, Debug, Default)]
pub struct Learning {
    /// M: the largest absolute loss seen.
    max_abs: f64,
    /// Time and value of the last loss that counted.
    last: Option<(f64, f64)>,
}

/// Progress between two losses that counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The improvement as a fraction of M: at least 0.
    pub progress: f64,
    /// Seconds between the two: above 0.
    pub seconds: f64,
}

impl Learning {
    /// Records the job's loss at time `t`. Returns the progress, or `None` when there is nothing to measure.
    ///
    /// A loss counts only when `least_gap` seconds have passed since the last one that counted (F6):
    /// frames close together hold mostly noise. In print, every loss counts.
    pub fn observe(&mut self, t: f64, job: &Job, variant: Variant, least_gap: f64) -> Option<Step> {
        self.step(t, job, variant, least_gap).filter(|step| step.seconds > 0.0)
    }

    /// The progress alone, as [`Self::observe`] gives it, but also between two frames of the same time,
    /// since it is not divided by seconds.
    pub fn gain(&mut self, t: f64, job: &Job, variant: Variant, least_gap: f64) -> Option<f64> {
        self.step(t, job, variant, least_gap).map(|step| step.progress)
    }

    fn step(&mut self, t: f64, job: &Job, variant: Variant, least_gap: f64) -> Option<Step> {
        for seen in [job.loss, job.loss_max].into_iter().flatten().filter(|x| x.is_finite()) {
            self.max_abs = self.max_abs.max(seen.abs());
        }
        let loss = job.loss.filter(|x| x.is_finite())?;
        let Some((before, previous)) = self.last else {
            self.last = Some((t, loss));
            return None;
        };
        let seconds = t - before;
        if variant == Variant::Resolved && seconds < least_gap {
            return None;
        }
        self.last = Some((t, loss));
        let progress = self.progress(previous, loss, job.direction, variant);
        Some(Step { progress, seconds })
    }

    fn progress(&self, previous: f64, loss: f64, direction: Direction, variant: Variant) -> f64 {
        if self.max_abs <= 0.0 {
            return 0.0;
        }
        let gain = match direction {
            Direction::Minimize => previous - loss,
            Direction::Maximize => loss - previous,
        };
        let counted = match variant {
            Variant::Resolved => gain.max(0.0),
            Variant::Published => gain.abs(),
        };
        saturate(saturate(counted) / self.max_abs)
    }
}
