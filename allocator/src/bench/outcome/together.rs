//! How much of the machine the jobs make use of when all of them run at once.
//!
//! Jobs that get in each other's way do less together than one alone: thread pools that spin while
//! they wait, for instance, can bring two jobs of two threads each on two CPUs to a small part of
//! it. No allocator's figures mean anything on such a ground, so it is measured.

use serde::{Deserialize, Serialize};

use super::super::record::Recorded;
use super::JobFacts;
use super::samples_of;

/// Shorter spans say little: samples come once a second.
const LEAST_SPAN: f64 = 3.0;

/// What is good enough: caches shared between jobs cost some percent.
const GOOD: f64 = 0.9;

/// More than that is not possible for jobs that fill the machine alone; rates err by some percent.
const POSSIBLE: f64 = 1.1;

/// The throughput of all jobs while all of them ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Together {
    /// How many jobs ran.
    pub(crate) jobs: usize,
    /// Seconds for which all of them did steps.
    pub(crate) span: f64,
    /// The sum of each job's rate as a fraction of its rate with the machine for itself; 1 where
    /// sharing costs nothing.
    pub(crate) throughput: f64,
    /// Whether other work disturbed the run that tells it.
    #[serde(default)]
    pub(crate) disturbed: bool,
}

impl Together {
    /// For people.
    pub(crate) fn words(&self) -> String {
        let Self { jobs, span, throughput, disturbed } = self;
        let beside = if *disturbed { ", in a disturbed run" } else { "" };
        format!(
            "together {jobs} jobs reached {throughput:.2} of one job's throughput over {span:.0} s\
             {beside}"
        )
    }

    /// What is wrong with that, if anything is. A disturbed run does not tell.
    pub(crate) fn doubt(&self) -> Option<&'static str> {
        if self.disturbed {
            None
        } else if self.throughput < GOOD {
            Some("together: the jobs hinder each other; try fewer threads for each")
        } else if self.throughput > POSSIBLE {
            Some(
                "together: above 1 the machine was not idle in the calibration, or jobs cannot fill it",
            )
        } else {
            None
        }
    }
}

/// The joint throughput of `jobs` in a run.
///
/// `None` if a job has no solo rate, if there are not two jobs, or if they hardly ran at once.
pub(super) fn together(jobs: &[JobFacts], run: &Recorded) -> Option<Together> {
    if jobs.len() < 2 {
        return None;
    }
    let steps: Vec<Vec<(f64, f64)>> =
        jobs.iter().map(|facts| steps_of(&facts.job.name, run)).collect();
    let from =
        steps.iter().map(|its| its.first().map(|first| first.0)).collect::<Option<Vec<_>>>()?;
    let to = steps.iter().map(|its| its.last().map(|last| last.0)).collect::<Option<Vec<_>>>()?;
    let from = from.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let to = to.into_iter().fold(f64::INFINITY, f64::min);
    let span = to - from;
    if span < LEAST_SPAN {
        return None;
    }
    let mut throughput = 0.0;
    for (its, facts) in steps.iter().zip(jobs) {
        let within: Vec<_> = its.iter().filter(|(t, _)| (from..=to).contains(t)).collect();
        let ((t0, before), (t1, after)) = (within.first()?, within.last()?);
        throughput += (after - before) / (t1 - t0) / facts.solo_rate?;
    }
    let disturbed = run.run.host.spoiled.is_some();
    throughput.is_finite().then_some(Together { jobs: jobs.len(), span, throughput, disturbed })
}

/// When how many steps were done, from the first one on.
fn steps_of(job: &str, run: &Recorded) -> Vec<(f64, f64)> {
    samples_of(job, run)
        .filter_map(|(t, its)| its.steps.filter(|steps| *steps > 0).map(|steps| (t, steps)))
        // Counts below 2^32 are exact; no bench does more steps.
        .map(|(t, steps)| (t, f64::from(u32::try_from(steps).unwrap_or(u32::MAX))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{job, recorded, running};
    use super::*;

    /// Two jobs, of which the second begins after 4 s and does its first step after 6 s; each then
    /// does `rate` steps in a second, and 100 alone.
    fn two(rate: u32) -> (Vec<JobFacts>, Recorded) {
        let samples = (0..20).map(|t| {
            let mut jobs = vec![running("a", 1.0, u64::from(1 + rate * t))];
            if t >= 4 {
                jobs.push(running("b", 1.0, u64::from(rate * t.saturating_sub(5))));
            }
            (f64::from(t), jobs)
        });
        let facts = |name, arrive| JobFacts::new(&job(name, arrive), Some(100.0));
        (
            vec![facts("a", 0.0), facts("b", 4.0)],
            recorded("none", 1, &[("a", 0.0, 20.0), ("b", 4.0, 20.0)], samples),
        )
    }

    #[test]
    fn half_the_speed_for_each_of_two_is_one_jobs_throughput() {
        let (jobs, run) = two(50);
        let found = together(&jobs, &run).expect("they overlap");
        assert!((found.throughput - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.jobs, found.span), (2, 13.0));
        assert_eq!(found.doubt(), None);
    }

    #[test]
    fn jobs_in_each_others_way_are_told() {
        let (jobs, run) = two(5);
        let found = together(&jobs, &run).expect("they overlap");
        assert!((found.throughput - 0.1).abs() < 1e-9, "{found:?}");
        assert!(found.doubt().is_some_and(|doubt| doubt.contains("hinder")));
        assert!(!found.words().contains("disturbed"), "{}", found.words());
    }

    #[test]
    fn a_disturbed_run_is_named_and_raises_no_doubt() {
        let (jobs, mut run) = two(5);
        run.run.host.spoiled = Some("other work took 54 % of the machine".to_owned());
        let found = together(&jobs, &run).expect("they overlap");
        assert!(found.words().ends_with("over 13 s, in a disturbed run"), "{}", found.words());
        assert_eq!(found.doubt(), None);
    }

    #[test]
    fn without_a_rate_or_a_second_job_there_is_nothing_to_say() {
        let (mut jobs, run) = two(50);
        jobs[1].solo_rate = None;
        assert_eq!(together(&jobs, &run), None);
        assert_eq!(together(&jobs[..1], &run), None);
    }

    #[test]
    fn jobs_that_hardly_meet_say_nothing() {
        let (jobs, mut run) = two(50);
        run.samples.truncate(8);
        assert_eq!(together(&jobs, &run), None);
    }
}
