//! A policy that decides without acting, for comparison with the policy that acts.
//!
//! A shadow sees the frames of the acting policy, with the shadow's own last choices in `limit.cpu`.
//! Losses and usage are still those under the limits in force. So a shadow shows what it would do now,
//! not what its choices would have led to.

use paceline_policy::limiter::MIN_CHANGE;
use paceline_policy::unit::count;
use paceline_policy::{Decision, Frame, PerJob, Policy, Share};

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

    /// Answers a frame to which the acting policy answered `acted`.
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
        self.disagreements += u64::from(distances.iter().any(|apart| *apart >= MIN_CHANGE));
        let mean = || distances.iter().sum::<f64>() / count(distances.len());
        self.distance = (!distances.is_empty()).then(mean);
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// The shares of its last answer.
    pub fn limits(&self) -> &PerJob<Share> {
        &self.limits
    }

    /// The mean distance to the acting policy's shares, over the jobs that both name.
    pub fn distance(&self) -> Option<f64> {
        self.distance
    }

    /// The number of frames that it has answered.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The number of answers in which some job's share differs by at least [`MIN_CHANGE`].
    pub fn disagreements(&self) -> u64 {
        self.disagreements
    }
}

#[cfg(test)]
mod tests {
    use paceline_policy::frame::Job;
    use paceline_policy::policies::Unlimited;
    use paceline_policy::{JobId, Params};

    use super::*;

    /// A policy that halves its last choice.
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
    fn shadow_sees_its_own_choices_not_those_of_the_acting_policy() {
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
    fn distance_is_none_without_jobs_and_returning_jobs_are_new() {
        let mut shadow = Shadow::new(Box::new(Halving));
        for (jobs, distance) in [(&["a"][..], Some(0.5)), (&[], None), (&["a"], Some(0.5))] {
            let frame = frame(0.0, jobs);
            shadow.watch(&frame, &unlimited(&frame));
            assert_eq!(shadow.distance(), distance);
        }
    }
}
