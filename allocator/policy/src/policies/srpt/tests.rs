use proptest::prelude::*;

use super::*;
use crate::unit::JobId;

fn job(name: &str, remaining: impl Into<Option<f64>>) -> Job {
    Job { remaining: remaining.into(), ..Job::new(JobId::new(name).unwrap()) }
}

fn decide(jobs: Vec<Job>) -> Decision {
    let frame = Frame { t: 1.0, nodes: Vec::new(), jobs };
    Srpt::new(&Params::default()).unwrap().decide(&frame)
}

fn shares(decision: &Decision) -> Vec<(&str, f64)> {
    decision.limits.iter().map(|(id, share)| (id.as_str(), share.get())).collect()
}

#[test]
fn job_with_the_least_work_left_gets_the_machine() {
    let decision = decide(vec![job("a", 30.0), job("b", 7.5), job("c", None)]);
    assert_eq!(shares(&decision), [("a", WAITING), ("b", 1.0), ("c", WAITING)]);
    let why = |name: &str| decision.jobs[&JobId::new(name).unwrap()].why.to_string();
    assert_eq!(why("b"), "7.5 s of work left, the least of all");
    assert_eq!(why("a"), "30.0 s of work left, jobs with less work left: 1; it waits");
    assert_eq!(why("c"), "remaining work unknown, jobs with less work left: 2; it waits");
}

#[test]
fn share_above_a_jobs_maximum_goes_to_the_next() {
    let mut first = job("first", 1.0);
    first.limit.max = Some(0.25);
    let decision = decide(vec![job("next", 2.0), first, job("last", 3.0)]);
    assert_eq!(shares(&decision), [("first", 0.25), ("last", WAITING), ("next", 0.75)]);
}

#[test]
fn jobs_of_equal_work_stand_in_the_order_of_their_names() {
    let decision = decide(vec![job("b", 1.0), job("a", 1.0)]);
    assert_eq!(shares(&decision), [("a", 1.0), ("b", WAITING)]);
}

proptest! {
    #[test]
    fn every_job_has_a_share_whatever_is_said_of_its_work(
        work in prop::collection::vec(prop::option::of(any::<f64>()), 0..6),
        most in prop::collection::vec(prop::option::of(any::<f64>()), 6),
    ) {
        let jobs = work.iter().zip(most).enumerate().map(|(at, (work, most))| {
            let mut job = job(&at.to_string(), *work);
            job.limit.max = most;
            job
        });
        let mut jobs: Vec<Job> = jobs.collect();
        let decision = decide(jobs.clone());
        prop_assert_eq!(decision.limits.len(), jobs.len());
        let sum: f64 = decision.limits.values().map(|share| share.get()).sum();
        prop_assert!(sum <= 1.0 + 7.0 * WAITING, "{}", sum);
        jobs.reverse();
        prop_assert_eq!(decide(jobs), decision);
    }
}
