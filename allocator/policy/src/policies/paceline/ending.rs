//! When a job that may be ended has reached its objective.

use crate::frame::Job;

/// So many losses in a row that reach it are enough without the job's own word.
const LOSSES: u8 = 3;
/// Beside the job's own word, a loss bears it out that is off by this part of the fall so far: the word is that of
/// a few batches, and the mean over a frame comes a little later.
const NEAR: f64 = 0.02;

/// What speaks for a job's end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    target: Option<f64>,
    reaching: u8,
    /// The job's own word, and no loss that bears it out yet.
    latched: bool,
    /// How far the first loss was from the objective.
    fall: Option<f64>,
    ended: Option<End>,
}

/// The mean loss that ended a job, which may be a little off its objective, and that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// The loss.
    pub loss: f64,
    /// The objective.
    pub objective: f64,
}

impl Ending {
    pub(super) fn take(&mut self, job: &Job) {
        let target = job.targets.objective.filter(|target| target.is_finite());
        if target != self.target {
            (self.target, self.reaching, self.latched, self.fall) = (target, 0, false, None);
        }
        let Some(objective) = target.filter(|_| job.may_terminate.unwrap_or(true)) else { return };
        self.latched = job.reached.objective;
        let Some(loss) = job.loss.filter(|loss| loss.is_finite()) else { return };
        let away = (loss - objective).abs();
        let fall = *self.fall.get_or_insert(away);
        let reaches = job.direction.reached(loss, objective);
        self.reaching = if reaches { self.reaching.saturating_add(1) } else { 0 };
        // One latch alone may be chance, and so may be one loss.
        let is_near = reaches || away <= NEAR * fall;
        if self.latched && is_near || self.reaching >= LOSSES {
            self.ended.get_or_insert(End { loss, objective });
        }
    }

    /// Set once the job is to end, for good.
    pub(super) fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Whether the job itself says that it has reached its objective, and no loss bears it out yet.
    pub(super) fn is_claimed(&self) -> bool {
        self.ended.is_none() && self.latched
    }

    /// Whether something speaks for its end, and another loss will tell.
    pub(super) fn is_being_confirmed(&self) -> bool {
        self.ended.is_none() && (self.latched || self.reaching > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::JobId;

    fn job(loss: f64, reached: bool) -> Job {
        let mut job = Job::new(JobId::new("a").unwrap());
        (job.loss, job.targets.objective) = (Some(loss), Some(1.0));
        job.reached.objective = reached;
        job
    }

    fn ends(jobs: &[Job]) -> bool {
        let mut ending = Ending::default();
        for job in jobs {
            ending.take(job);
        }
        ending.ended().is_some()
    }

    #[test]
    fn job_ends_by_its_word_and_a_loss_that_bears_it_out() {
        assert!(ends(&[job(0.9, true)]) && ends(&[job(1.1, true), job(0.9, true)]));
        assert!(!ends(&[job(1.1, true), job(1.1, true)]));
        // Of a fall from 6 to 1, less than 0.1 is near.
        assert!(ends(&[job(6.0, false), job(1.09, true)]));
        assert!(!ends(&[job(6.0, false), job(1.1, false), job(1.2, true)]));
        let kept = Job { may_terminate: Some(false), ..job(0.9, true) };
        assert!(!ends(&[kept]));
    }

    #[test]
    fn job_ends_by_three_losses_in_a_row() {
        let (in_it, out) = (job(0.9, false), job(1.1, false));
        assert!(ends(&[in_it.clone(), in_it.clone(), in_it.clone()]));
        assert!(!ends(&[in_it.clone(), in_it.clone(), out, in_it.clone(), in_it]));
    }

    #[test]
    fn objective_that_changes_begins_the_count_again() {
        let mut other = job(0.4, false);
        other.targets.objective = Some(0.5);
        assert!(!ends(&[job(0.9, false), job(0.9, false), other.clone(), other.clone()]));
        assert!(ends(&[job(0.9, false), other.clone(), other.clone(), other]));
    }
}
