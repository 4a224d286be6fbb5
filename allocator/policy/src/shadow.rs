//! A policy that watches and does not act: what it would have chosen, and how far that is from what
//! was chosen.
//!
//! A shadow sees the frames of the policy that acts, but for one figure: what it chose last itself
//! stands where the other's choice stood. Losses and use stay those of the limits in force, so a
//! shadow says what it would do now, not what would have come of it.

use crate::decision::Decision;
use crate::frame::Frame;
use crate::limiter::LEAST_CHANGE;
use crate::per_job::PerJob;
use crate::policy::Policy;
use crate::unit::{Share, count};

/// One shadow.
#[derive(Debug)]
pub struct Shadow {
    policy: Box<dyn Policy>,
    limits: PerJob<Share>,
    distance: Option<f64>,
    decisions: u64,
    disagreements: u64,
}

impl Shadow {
    /// A shadow that has seen nothing yet.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let limits = PerJob::new();
        Self { policy, limits, distance: None, decisions: 0, disagreements: 0 }
    }

    /// Lets it answer a frame that the policy that acts has answered by `acted`.
    pub fn watch(&mut self, frame: &Frame, acted: &Decision) {
        let mut frame = frame.clone();
        for job in &mut frame.jobs {
            job.limit.cpu = Some(self.limits.get(&job.id).map_or(1.0, |share| share.get()));
        }
        self.limits = self.policy.decide(&frame).limits;
        let distances: Vec<f64> = self
            .limits
            .iter()
            .filter_map(|(job, own)| Some((own.get() - acted.limits.get(job)?.get()).abs()))
            .collect();
        self.decisions += 1;
        self.disagreements += u64::from(distances.iter().any(|apart| *apart >= LEAST_CHANGE));
        let mean = || distances.iter().sum::<f64>() / count(distances.len());
        self.distance = (!distances.is_empty()).then(mean);
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// What it would give each job, by its last answer.
    pub fn limits(&self) -> &PerJob<Share> {
        &self.limits
    }

    /// The mean distance to what was chosen, over the jobs that both name.
    pub fn distance(&self) -> Option<f64> {
        self.distance
    }

    /// Frames that it has answered.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Answers by which some job would have had another share, by at least [`LEAST_CHANGE`].
    pub fn disagreements(&self) -> u64 {
        self.disagreements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Job;
    use crate::params::Params;
    use crate::policies::Unlimited;
    use crate::unit::JobId;

    /// A policy that halves what it chose last, and notes what it was told of that.
    #[derive(Debug, Default)]
    struct Halving;

    impl Policy for Halving {
        fn name(&self) -> &'static str {
            "halving"
        }

        fn decide(&mut self, frame: &Frame) -> Decision {
            let half = |job: &Job| {
                let last = job.limit.chosen().unwrap();
                (job.id.clone(), Share::nearest(last.get() / 2.0))
            };
            Decision { limits: frame.jobs.iter().map(half).collect(), ..unlimited(frame) }
        }
    }

    fn unlimited(frame: &Frame) -> Decision {
        Unlimited::new(&Params::default()).unwrap().decide(frame)
    }

    fn frame(t: f64, jobs: &[&str]) -> Frame {
        let job = |name: &&str| {
            let mut job = Job::new(JobId::new(*name).unwrap());
            job.limit.cpu = Some(0.9);
            job
        };
        Frame { t, nodes: Vec::new(), jobs: jobs.iter().map(job).collect() }
    }

    #[test]
    fn a_shadow_is_told_its_own_choices_and_not_those_of_the_policy_that_acts() {
        let mut shadow = Shadow::new(Box::new(Halving));
        for (t, expected) in [(0.0, 0.5), (1.0, 0.25), (2.0, 0.125)] {
            let frame = frame(t, &["a"]);
            shadow.watch(&frame, &unlimited(&frame));
            let given: Vec<f64> = shadow.limits().values().map(|share| share.get()).collect();
            assert_eq!(given, [expected]);
            assert_eq!(shadow.distance(), Some(1.0 - expected));
        }
        assert_eq!((shadow.decisions(), shadow.disagreements()), (3, 3));
    }

    #[test]
    fn a_shadow_of_the_same_policy_never_disagrees() {
        let policy = Unlimited::new(&Params::default()).unwrap();
        let mut shadow = Shadow::new(Box::new(policy));
        for t in [0.0, 1.0] {
            let frame = frame(t, &["a", "b"]);
            shadow.watch(&frame, &unlimited(&frame));
        }
        assert_eq!((shadow.decisions(), shadow.disagreements()), (2, 0));
        assert_eq!(shadow.distance(), Some(0.0));
    }

    #[test]
    fn without_jobs_there_is_no_distance_and_a_job_that_comes_back_is_new() {
        let mut shadow = Shadow::new(Box::new(Halving));
        for (jobs, distance) in [(&["a"][..], Some(0.5)), (&[], None), (&["a"], Some(0.5))] {
            let frame = frame(0.0, jobs);
            shadow.watch(&frame, &unlimited(&frame));
            assert_eq!(shadow.distance(), distance);
        }
    }
}
