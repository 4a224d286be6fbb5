//! Which jobs may be served first, so that no job ends later than under equal sharing.
//!
//! Each job's deadline is its end in the virtual system. Its *slack* is the work that the node can do until
//! then beyond the work that must be done by then. That is the work of jobs with earlier deadlines, and the
//! part of the other jobs' work that their caps do not allow later. Serving a job uses up the slack of those
//! with earlier deadlines, once its own claim before these is used up.

use super::claimant::{Claimant, Size, Step};
use super::ranking::Ranking;
use super::sharing::Trajectory;

/// The slacks of one moment.
#[derive(Debug)]
pub(super) struct Slacks {
    /// Deadline, slack and index of each job of known size, by deadline.
    known: Vec<(f64, f64, usize)>,
    /// The least slack up to each of them.
    least: Vec<f64>,
    /// The earliest deadline whose slack is used up; infinite if there is none.
    exhausted: f64,
    exhausted_volume: f64,
}

/// What is kept from run to run.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// The jobs of known size by deadline.
    by_deadline: Ranking,
    /// The steps of all claims by time.
    steps: Ranking,
}

impl Slacks {
    /// Computes the slacks on a node that does `capacity` node-seconds per second. A slack of at most `epsilon`
    /// counts as used up.
    pub(super) fn new(
        all: &[Claimant],
        trajectory: &Trajectory,
        (capacity, epsilon): (f64, f64),
        orders: &mut Orders,
    ) -> Self {
        let is_known = |claimant: &&Claimant| matches!(claimant.size, Size::Known(_));
        let due = |at: usize| all.get(at).filter(is_known).map(|claimant| claimant.due);
        let by_deadline = orders.by_deadline.sort(all.len(), due);
        let mut known: Vec<(f64, f64, usize)> =
            by_deadline.iter().map(|rank| (rank.number(), 0.0, rank.place())).collect();
        let mut steps = Vec::with_capacity(2 * all.len());
        for claimant in all {
            claimant.steps(trajectory, &mut steps);
        }
        let at = |index: usize| steps.get(index).map(|step: &Step| step.at);
        let order = orders.steps.sort(steps.len(), at).iter();
        let mut order = order.filter_map(|rank| steps.get(rank.place())).peekable();
        let (mut constant, mut rate, mut by_volume) = (0.0, 0.0, 0.0);
        for (due, slack, _) in &mut known {
            while let Some(step) = order.next_if(|step| step.at <= *due) {
                constant += step.constant;
                rate += step.rate;
                by_volume += step.volume;
            }
            let volume = if by_volume > 0.0 { trajectory.volume_at(*due) } else { 0.0 };
            *slack = capacity * *due - (constant + rate * *due + by_volume * volume);
        }
        // A job that must run at its cap is not affected by the order of the others. Its claim counts in their
        // slacks.
        let all_run = all.iter().filter(|claimant| claimant.must).map(|claimant| claimant.cap);
        if all_run.sum::<f64>() <= capacity {
            known.retain(|(_, _, index)| !all.get(*index).is_some_and(|claimant| claimant.must));
        }
        let mut least = f64::INFINITY;
        let least = known.iter().map(|(_, slack, _)| {
            least = least.min(*slack);
            least
        });
        let least = least.collect();
        let exhausted = known.iter().find(|(_, slack, _)| *slack <= epsilon);
        let exhausted = exhausted.map_or(f64::INFINITY, |(due, _, _)| *due);
        let volume = if exhausted.is_finite() { trajectory.volume_at(exhausted) } else { 0.0 };
        Self { known, least, exhausted, exhausted_volume: volume }
    }

    /// Whether `epsilon` node-seconds of a job may be served first.
    pub(super) fn allows(&self, claimant: &Claimant, epsilon: f64) -> bool {
        claimant.due <= self.exhausted
            || claimant.claim(self.exhausted, || self.exhausted_volume) > epsilon
    }

    /// The work of a job that may be served before the slack of another is used up. Before jobs whose slack is
    /// already used up, only its own claim counts.
    pub(super) fn leaves(&self, claimant: &Claimant, trajectory: &Trajectory) -> f64 {
        let earlier = self.known.iter().take_while(|(due, _, _)| *due < claimant.due);
        let left = earlier.map(|(due, slack, _)| {
            slack.max(0.0) + claimant.claim(*due, || trajectory.volume_at(*due))
        });
        left.fold(f64::INFINITY, f64::min)
    }

    /// The earliest deadline whose slack is used up; infinite if there is none.
    pub(super) fn exhausted(&self) -> f64 {
        self.exhausted
    }

    /// The least slack of those with earlier deadlines.
    pub(super) fn before(&self, claimant: &Claimant) -> f64 {
        let earlier = self.known.partition_point(|(due, _, _)| *due < claimant.due);
        earlier.checked_sub(1).and_then(|at| self.least.get(at)).copied().unwrap_or(f64::INFINITY)
    }

    /// The least slack of the others.
    pub(super) fn of_others(&self, index: usize) -> Option<f64> {
        let others = self.known.iter().filter(|(_, _, other)| *other != index);
        others.map(|(_, slack, _)| *slack).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sharing::{Outcome, Participant, Sharing};
    use super::*;

    /// Jobs as (weight, cap, work left, virtual work left), all of known size.
    fn known(jobs: &[(f64, f64, f64, f64)]) -> (Vec<Claimant>, Trajectory) {
        let participant = |(weight, cap, _, left): &(f64, f64, f64, f64)| Participant {
            weight: *weight,
            cap: *cap,
            left: *left,
        };
        let participants: Vec<Participant> = jobs.iter().map(participant).collect();
        let trajectory = Sharing::default().run(&participants, 1.0, f64::INFINITY);
        let claimant = |((_, cap, left, _), outcome): (&(f64, f64, f64, f64), &Outcome)| Claimant {
            due: outcome.end,
            cap: *cap,
            size: Size::Known(*left),
            must: false,
        };
        let all = jobs.iter().zip(&trajectory.outcomes).map(claimant).collect();
        (all, trajectory)
    }

    #[test]
    fn slack_of_three_equal_shares_is_what_others_can_make_up_for() {
        let (all, trajectory) =
            known(&[(1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 3.0, 3.0), (1.0, 1.0, 9.0, 9.0)]);
        let slacks = Slacks::new(&all, &trajectory, (1.0, 0.5), &mut Orders::default());
        // Deadlines 6, 8 and 14. By 6: 2, of the second 3 − 2 and of the third 9 − 8 must be done.
        let found: Vec<f64> = slacks.known.iter().map(|(_, slack, _)| *slack).collect();
        for (found, expected) in found.iter().zip([2.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert!((slacks.exhausted - 8.0).abs() < 1e-9);
        assert!(slacks.allows(&all[0], 0.5) && slacks.allows(&all[1], 0.5));
        // 3 s of the last job must be done before 8 anyway.
        assert!(slacks.allows(&all[2], 2.9) && !slacks.allows(&all[2], 3.1));
        assert!((slacks.leaves(&all[2], &trajectory) - 3.0).abs() < 1e-9);
        assert!(slacks.leaves(&all[0], &trajectory).is_infinite());
    }

    #[test]
    fn late_job_goes_before_all_others() {
        let (all, trajectory) = known(&[(1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 3.0, 3.0)]);
        let slacks = Slacks::new(&all, &trajectory, (1.0, 0.5), &mut Orders::default());
        assert!(slacks.exhausted <= 0.0);
        assert!(slacks.allows(&all[0], 0.5) && !slacks.allows(&all[1], 0.5));
    }

    fn jobs() -> impl Strategy<Value = Vec<(f64, f64, f64, f64, bool, f64)>> {
        let one =
            (0.3..3.0_f64, 0.1..1.0_f64, 0.0..9.0_f64, 0.0..9.0_f64, any::<bool>(), 0.0..9.0_f64);
        prop::collection::vec(one, 1..8)
    }

    proptest! {
        #[test]
        fn sweep_adds_up_the_claims_of_all(jobs in jobs()) {
            let participants: Vec<Participant> = jobs
                .iter()
                .map(|(weight, cap, _, left, ..)| Participant { weight: *weight, cap: *cap, left: *left })
                .collect();
            let trajectory = Sharing::default().run(&participants, 0.9, f64::INFINITY);
            let all: Vec<Claimant> = jobs.iter().zip(&trajectory.outcomes).map(|(job, outcome)| {
                let (weight, cap, left, _, is_known, fair) = *job;
                let size = if is_known {
                    Size::Known(left)
                } else {
                    Size::Unknown { weight, theta: 0.05, fair, used: left, outcome: *outcome }
                };
                Claimant { due: outcome.end, cap, size, must: false }
            }).collect();
            let slacks = Slacks::new(&all, &trajectory, (0.9, 0.0), &mut Orders::default());
            for (due, slack, _) in &slacks.known {
                let volume = trajectory.volume_at(*due);
                let claims: f64 = all.iter().map(|claimant| claimant.claim(*due, || volume)).sum();
                // For the service by which an unknown job is behind, the sweep applies its cap only in part.
                prop_assert!(*slack <= 0.9 * due - claims + 1e-6);
                let behind: f64 = all.iter().map(|claimant| match claimant.size {
                    Size::Known(_) => 0.0,
                    Size::Unknown { fair, used, outcome, .. } => {
                        let full = 0.95 * fair - used;
                        if full > claimant.cap * due { 0.95 * outcome.served } else { full.clamp(0.0, 0.95 * outcome.served) }
                    }
                }).sum();
                prop_assert!(*slack >= 0.9 * due - claims - behind - 1e-6);
            }
        }
    }
}
