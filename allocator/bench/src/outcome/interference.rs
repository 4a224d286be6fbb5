//! Interference: the throughput of all jobs together, compared with one job alone.
//!
//! Jobs that slow each other down do less work together than one alone. For instance, thread pools that
//! spin while they wait can reduce two jobs of two threads each on two CPUs to a small part of it.
//! Comparisons of policies mean nothing then, so the bench measures it.

use serde::{Deserialize, Serialize};

use super::super::record::Recorded;
use super::JobFacts;
use super::samples_of;

/// The shortest span in seconds that is long enough to measure: samples come once a second.
const MIN_SPAN: f64 = 3.0;

/// The smallest throughput that raises no doubt: shared caches cost a few percent.
const MIN_THROUGHPUT: f64 = 0.9;

/// The largest throughput that raises no doubt: jobs that fill the machine alone cannot exceed 1, and
/// rates have errors of a few percent.
const MAX_THROUGHPUT: f64 = 1.1;

/// The throughput of all jobs while all of them ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interference {
    /// How many jobs ran.
    pub(crate) jobs: usize,
    /// Seconds during which all of them did steps.
    pub(crate) span: f64,
    /// The sum over the jobs of their rate divided by their rate alone; 1 if sharing costs nothing.
    pub(crate) throughput: f64,
    /// Whether other work disturbed the measured run.
    #[serde(default)]
    pub(crate) disturbed: bool,
}

impl Interference {
    /// For people.
    pub(crate) fn words(&self) -> String {
        let Self { jobs, span, throughput, disturbed } = self;
        let beside = if *disturbed { ", in a disturbed run" } else { "" };
        format!(
            "interference: together {jobs} jobs reached {throughput:.2} of one job's throughput over \
             {span:.0} s{beside}"
        )
    }

    /// What is wrong, if the throughput is implausible. A disturbed run raises no doubt.
    pub(crate) fn doubt(&self) -> Option<&'static str> {
        if self.disturbed {
            None
        } else if self.throughput < MIN_THROUGHPUT {
            Some("interference: the jobs slow each other down; try fewer threads per job")
        } else if self.throughput > MAX_THROUGHPUT {
            Some(
                "interference: a throughput above 1 means that the machine was busy during the \
                 calibration, or that one job cannot use all of it",
            )
        } else {
            None
        }
    }
}

/// The joint throughput of `jobs` in a run.
///
/// `None` if a job has no solo rate, if there are fewer than two jobs, or if they hardly overlapped.
pub(crate) fn interference(jobs: &[JobFacts], run: &Recorded) -> Option<Interference> {
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
    if span < MIN_SPAN {
        return None;
    }
    let mut throughput = 0.0;
    for (its, facts) in steps.iter().zip(jobs) {
        let within: Vec<_> = its.iter().filter(|(t, _)| (from..=to).contains(t)).collect();
        let ((t0, before), (t1, after)) = (within.first()?, within.last()?);
        throughput += (after - before) / (t1 - t0) / facts.solo_rate?;
    }
    let disturbed = run.run.host.spoiled.is_some();
    throughput.is_finite().then_some(Interference { jobs: jobs.len(), span, throughput, disturbed })
}

/// Times and numbers of steps done, from the first step on.
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

    /// Two jobs: the second begins after 4 s and does its first step after 6 s. Each does `rate` steps
    /// per second, and 100 when alone.
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
    fn two_jobs_at_half_speed_have_throughput_one() {
        let (jobs, run) = two(50);
        let found = interference(&jobs, &run).expect("they overlap");
        assert!((found.throughput - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.jobs, found.span), (2, 13.0));
        assert_eq!(found.doubt(), None);
    }

    #[test]
    fn jobs_that_slow_each_other_down_are_reported() {
        let (jobs, run) = two(5);
        let found = interference(&jobs, &run).expect("they overlap");
        assert!((found.throughput - 0.1).abs() < 1e-9, "{found:?}");
        assert!(found.doubt().is_some_and(|doubt| doubt.contains("slow each other down")));
        assert!(!found.words().contains("disturbed"), "{}", found.words());
    }

    #[test]
    fn disturbed_run_is_named_and_raises_no_doubt() {
        let (jobs, mut run) = two(5);
        run.run.host.spoiled = Some("other work took 54 % of the machine".to_owned());
        let found = interference(&jobs, &run).expect("they overlap");
        assert!(found.words().ends_with("over 13 s, in a disturbed run"), "{}", found.words());
        assert_eq!(found.doubt(), None);
    }

    #[test]
    fn missing_rate_or_second_job_gives_no_figure() {
        let (mut jobs, run) = two(50);
        jobs[1].solo_rate = None;
        assert_eq!(interference(&jobs, &run), None);
        assert_eq!(interference(&jobs[..1], &run), None);
    }

    #[test]
    fn jobs_that_hardly_overlap_give_no_figure() {
        let (jobs, mut run) = two(50);
        run.samples.truncate(8);
        assert_eq!(interference(&jobs, &run), None);
    }
}
