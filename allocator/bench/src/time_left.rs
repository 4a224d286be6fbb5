//! How long the runs that are left will take.

use super::record::Run;
use super::schedule::{Job, Schedule};

/// Seconds of a run besides its jobs: the allocator starts and ends, containers are created and removed.
const OVERHEAD: f64 = 8.0;

/// An estimate of the time that a run takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeLeft {
    /// The seconds that each completed run took.
    took: Vec<f64>,
    /// The seconds that a run should take by the jobs' work.
    by_work: Option<f64>,
}

impl TimeLeft {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let by_work = schedule.until.or_else(|| busy(&schedule.jobs, schedule.nodes.len()));
        Self { took: Vec::new(), by_work: by_work.map(|seconds| seconds + OVERHEAD) }
    }

    /// Adds a completed run, of this start of the bench or of an earlier one.
    pub(crate) fn took(&mut self, run: &Run) {
        self.took.push(OVERHEAD + run.jobs.iter().map(|job| job.ended).fold(0.0, f64::max));
    }

    /// Seconds that this number of runs will take: by the mean of earlier runs, else by the jobs' work.
    pub(crate) fn of_runs(&self, runs: usize) -> Option<f64> {
        let count = paceline_policy::unit::count;
        let mean = self.took.iter().sum::<f64>() / count(self.took.len());
        let each = if self.took.is_empty() { self.by_work } else { Some(mean) };
        each.map(|each| each * count(runs))
    }
}

/// Seconds until all jobs are done, if the machine is never idle while there is a job; `None` if a job's
/// work is unknown. Nodes are assumed to be equally fast.
fn busy(jobs: &[Job], nodes: usize) -> Option<f64> {
    let mut by_arrival: Vec<(f64, f64)> =
        jobs.iter().map(|job| Some((job.arrive, job.work?))).collect::<Option<_>>()?;
    by_arrival.sort_by(|a, b| a.0.total_cmp(&b.0));
    let nodes = paceline_policy::unit::count(nodes.max(1));
    Some(by_arrival.iter().fold(0.0, |end: f64, (arrive, work)| end.max(*arrive) + work / nodes))
}

/// Seconds as text for people.
pub(crate) fn in_words(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    if seconds < 60.0 { "less than a minute".to_owned() } else { format!("about {minutes:.0} min") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::outcome::example::recorded;

    fn schedule(head: &str, works: [&str; 2]) -> TimeLeft {
        let job = |(at, work): (usize, &str)| {
            format!(
                "[[job]]\nname = 'j{at}'\nimage = 'i'\ncommand = ['{{steps}}']\n\
                 arrive = {}\nwork = {work}\n",
                40 * at
            )
        };
        let jobs: String = works.into_iter().enumerate().map(job).collect();
        let text = format!("name = 's'\npolicies = ['none']\n{head}\n{jobs}");
        TimeLeft::new(&Schedule::parse(Path::new("s.toml"), &text).unwrap())
    }

    #[test]
    fn first_estimate_comes_from_the_jobs_work() {
        assert_eq!(schedule("", ["20", "30"]).of_runs(2), Some(2.0 * (70.0 + OVERHEAD)));
        assert_eq!(schedule("", ["50", "30"]).of_runs(1), Some(80.0 + OVERHEAD));
        assert_eq!(schedule("until = 90", ["50", "30"]).of_runs(1), Some(90.0 + OVERHEAD));
    }

    #[test]
    fn later_estimates_come_from_completed_runs() {
        let mut left = schedule("", ["20", "30"]);
        for ended in [100.0, 120.0] {
            left.took(&recorded("none", 1, &[("j0", 0.0, 3.0), ("j1", 40.0, ended)], []).run);
        }
        assert_eq!(left.of_runs(3), Some(3.0 * (110.0 + OVERHEAD)));
        assert_eq!(in_words(330.0), "about 6 min");
        assert_eq!(in_words(12.0), "less than a minute");
    }
}
