//! Detects that a job which may be ended has reached its objective.

use crate::frame::Job;
use crate::reason::paceline::End;

/// The number of losses in a row that prove it without the job's own report.
const LOSSES: u8 = 3;
/// A loss within this part of the whole fall confirms the job's own report. The report is based on a few
/// batches, and the mean over a frame follows a little later.
const NEAR: f64 = 0.02;
/// The policy runs soon for this many losses, to confirm a report.
const CONFIRMING: u8 = 2;

/// The evidence for a job's end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    target: Option<f64>,
    reaching: u8,
    /// Whether the job reports that it has reached its objective.
    latched: bool,
    /// The number of losses since it reports that.
    since_latched: u8,
    /// The two largest distances of losses from the objective. The second one is the whole fall: a single
    /// loss may be far off.
    farthest: [f64; 2],
    ended: Option<End>,
}

impl Ending {
    pub(super) fn take(&mut self, job: &Job) {
        let target = job.targets.objective.filter(|target| target.is_finite());
        if target != self.target {
            *self = Self { target, ended: self.ended, ..Self::default() };
        }
        let Some(objective) = target.filter(|_| job.may_terminate.unwrap_or(true)) else { return };
        self.latched = job.reached.objective;
        if !self.latched {
            self.since_latched = 0;
        }
        let Some(loss) = job.loss.filter(|loss| loss.is_finite()) else { return };
        let away = (loss - objective).abs();
        let [_, fall] = self.farthest;
        self.add(away);
        let reaches = job.direction.reached(loss, objective);
        self.reaching = if reaches { self.reaching.saturating_add(1) } else { 0 };
        // A single report or a single loss may be chance.
        let is_near = reaches || away <= NEAR * fall;
        if self.latched && is_near || self.reaching >= LOSSES {
            self.ended.get_or_insert(End { loss, objective });
        }
        if self.latched {
            self.since_latched = self.since_latched.saturating_add(1);
        }
    }

    fn add(&mut self, away: f64) {
        let [first, second] = self.farthest;
        self.farthest = if away > first { [away, first] } else { [first, second.max(away)] };
    }

    /// Set once the job is to be ended; then it stays set.
    pub(super) fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Whether the job reports that it has reached its objective, and no loss confirms it yet.
    pub(super) fn is_claimed(&self) -> bool {
        self.ended.is_none() && self.latched
    }

    /// Whether there is evidence for its end that another loss may confirm.
    pub(super) fn is_being_confirmed(&self) -> bool {
        let is_fresh = self.latched && self.since_latched < CONFIRMING;
        self.ended.is_none() && (is_fresh || self.reaching > 0)
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
        let fallen = |last| ends(&[job(9.0, false), job(6.0, false), last]);
        assert!(fallen(job(1.09, true)), "near, after a fall of 5");
        assert!(!fallen(job(1.11, true)) && !fallen(job(1.09, false)));
        let kept = Job { may_terminate: Some(false), ..job(0.9, true) };
        assert!(!ends(&[kept]));
    }

    #[test]
    fn large_first_loss_confirms_no_report() {
        let mut jobs = vec![job(1e4, false)];
        jobs.extend(vec![job(3.0, false); 5]);
        jobs.push(job(3.0, true));
        assert!(!ends(&jobs), "far from the objective");
    }

    #[test]
    fn report_that_no_loss_bears_out_is_no_longer_confirmed() {
        let mut ending = Ending::default();
        let confirmed = [false, true, true].map(|reached| {
            ending.take(&job(1.1, reached));
            (ending.is_claimed(), ending.is_being_confirmed())
        });
        assert_eq!(confirmed, [(false, false), (true, true), (true, false)]);
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
