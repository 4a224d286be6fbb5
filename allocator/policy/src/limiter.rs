//! What stands below every policy and cannot be bypassed: from wanted shares to changes of limits.
//!
//! A policy's choice is clamped to what the job's owner and the engine allow, never starves a job,
//! and becomes a change only when it is worth one. A job that has gone silent keeps what it has:
//! nobody is cut on the strength of figures that are no longer true.

use crate::unit::{JobId, Share};

/// The share below which no job is cut unless its own labels say so: it keeps a job alive enough
/// to report, and so to be given more again.
pub const DEFAULT_FLOOR: f64 = 0.05;

/// A change smaller than this fraction of the node is not worth a write. The policy's own choice
/// goes on adding up, so nothing is lost by leaving it.
pub const LEAST_CHANGE: f64 = 0.01;

/// The smallest limit that Docker accepts, in CPUs: 1000 µs of a 100 ms period.
pub const LEAST_CPUS: f64 = 0.01;

/// The rules of one node.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    /// [`LEAST_CPUS`] as a share of the node.
    least: f64,
}

/// What a policy wants for one job, and what bounds it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The job.
    pub job: JobId,
    /// The policy's choice.
    pub share: Share,
    /// What is in force.
    pub in_force: Share,
    /// The job's own least share.
    pub min: Option<Share>,
    /// The job's own largest share.
    pub max: Option<Share>,
    /// Whether the job has gone silent.
    pub silent: bool,
}

/// One limit to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// What is in force.
    pub from: Share,
    /// What is to be.
    pub to: Share,
}

impl Limiter {
    /// The rules of a node with `cpus` CPUs.
    pub fn new(cpus: f64) -> Self {
        Self { least: if cpus > 0.0 { LEAST_CPUS / cpus } else { LEAST_CPUS } }
    }

    /// The share that a job gets: the policy's choice within what is allowed.
    pub fn clamp(&self, wanted: &Wanted) -> Share {
        let floor = wanted.min.map_or(DEFAULT_FLOOR, Share::get).max(self.least).min(1.0);
        let ceiling = wanted.max.map_or(1.0, Share::get).max(floor);
        Share::nearest(wanted.share.get().clamp(floor, ceiling))
    }

    /// The changes that are worth a write, in the order in which to write them: decreases before
    /// increases, so that the node is never promised twice.
    pub fn changes(&self, wanted: &[Wanted]) -> Vec<Change> {
        let mut changes: Vec<Change> = wanted
            .iter()
            .filter(|wanted| !wanted.silent)
            .map(|wanted| Change {
                job: wanted.job.clone(),
                from: wanted.in_force,
                to: self.clamp(wanted),
            })
            .filter(|change| (change.to.get() - change.from.get()).abs() >= LEAST_CHANGE)
            .collect();
        changes.sort_by(|a, b| a.grows().cmp(&b.grows()).then_with(|| a.job.cmp(&b.job)));
        changes
    }
}

impl Change {
    /// Whether the job gets more.
    pub fn grows(&self) -> bool {
        self.to > self.from
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(job: &str, share: f64, in_force: f64) -> Wanted {
        Wanted {
            job: JobId::new(job).unwrap(),
            share: Share::nearest(share),
            in_force: Share::nearest(in_force),
            min: None,
            max: None,
            silent: false,
        }
    }

    #[test]
    fn decreases_come_before_increases() {
        let wanted = [wanted("a", 1.0, 0.2), wanted("b", 0.2, 1.0), wanted("c", 0.1, 0.9)];
        let order: Vec<_> =
            Limiter::new(2.0).changes(&wanted).into_iter().map(|c| c.job.to_string()).collect();
        assert_eq!(order, ["b", "c", "a"]);
    }

    #[test]
    fn a_change_below_one_percent_of_the_node_is_not_written() {
        let limiter = Limiter::new(2.0);
        assert!(limiter.changes(&[wanted("a", 0.509, 0.5)]).is_empty());
        assert_eq!(limiter.changes(&[wanted("a", 0.511, 0.5)]).len(), 1);
    }

    #[test]
    fn a_silent_job_keeps_what_it_has() {
        let silent = Wanted { silent: true, ..wanted("a", 0.1, 0.8) };
        assert!(Limiter::new(2.0).changes(&[silent]).is_empty());
    }

    #[test]
    fn the_labels_of_a_job_bound_its_share() {
        let limiter = Limiter::new(2.0);
        let min = Wanted { min: Some(Share::nearest(0.3)), ..wanted("a", 0.1, 1.0) };
        assert_eq!(limiter.clamp(&min), Share::nearest(0.3));
        let max = Wanted { max: Some(Share::nearest(0.5)), ..wanted("a", 1.0, 1.0) };
        assert_eq!(limiter.clamp(&max), Share::nearest(0.5));
    }

    proptest! {
        #[test]
        fn no_job_starves(share in 0.0..=1.0, in_force in 0.0..=1.0, cpus in 0.5..256.0) {
            let limiter = Limiter::new(cpus);
            let given = limiter.clamp(&wanted("a", share, in_force)).get();
            prop_assert!((DEFAULT_FLOOR..=1.0).contains(&given) && given * cpus >= LEAST_CPUS);
        }

        #[test]
        fn what_was_written_is_not_written_again(shares in prop::collection::vec(0.0..=1.0, 1..8)) {
            let limiter = Limiter::new(2.0);
            let mut wanted: Vec<_> =
                shares.iter().enumerate().map(|(i, s)| wanted(&i.to_string(), *s, 0.5)).collect();
            for change in limiter.changes(&wanted.clone()) {
                wanted.iter_mut().filter(|w| w.job == change.job).for_each(|w| w.in_force = change.to);
            }
            prop_assert!(limiter.changes(&wanted).is_empty());
        }
    }
}
