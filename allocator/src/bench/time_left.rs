//! How long the runs that are left will take.

use super::record::Run;
use super::schedule::{Job, Schedule};

/// What a run takes beside its jobs: the allocator's start and end, containers made and removed.
const AROUND: f64 = 8.0;

/// What is known of the time that a run takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeLeft {
    /// What each run took that was made.
    took: Vec<f64>,
    /// What one should take by the jobs' work.
    by_work: Option<f64>,
}

impl TimeLeft {
    pub(crate) fn of(schedule: &Schedule) -> Self {
        let by_work = schedule.until.or_else(|| busy(&schedule.jobs, schedule.nodes.len()));
        Self { took: Vec::new(), by_work: by_work.map(|seconds| seconds + AROUND) }
    }

    /// A run was made, now or by an earlier start of the bench.
    pub(crate) fn took(&mut self, run: &Run) {
        self.took.push(AROUND + run.jobs.iter().map(|job| job.ended).fold(0.0, f64::max));
    }

    /// Seconds that so many runs will take: as those before, and before there are any, by the work.
    pub(crate) fn of_runs(&self, runs: usize) -> Option<f64> {
        let count = paceline_policy::unit::count;
        let mean = self.took.iter().sum::<f64>() / count(self.took.len());
        let each = if self.took.is_empty() { self.by_work } else { Some(mean) };
        each.map(|each| each * count(runs))
    }
}

/// How long a machine that is never idle while there is a job works on all of them; `None` where a
/// job's work is not known. Nodes are as quick as each other.
fn busy(jobs: &[Job], nodes: usize) -> Option<f64> {
    let mut by_arrival: Vec<(f64, f64)> =
        jobs.iter().map(|job| Some((job.arrive, job.work?))).collect::<Option<_>>()?;
    by_arrival.sort_by(|a, b| a.0.total_cmp(&b.0));
    let nodes = paceline_policy::unit::count(nodes.max(1));
    Some(by_arrival.iter().fold(0.0, |end: f64, (arrive, work)| end.max(*arrive) + work / nodes))
}

/// Seconds as people say them.
pub(crate) fn in_words(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    if seconds < 60.0 { "less than a minute".to_owned() } else { format!("about {minutes:.0} min") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bench::outcome::example::recorded;

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
        TimeLeft::of(&Schedule::parse(Path::new("s.toml"), &text).unwrap())
    }

    #[test]
    fn before_the_first_run_the_work_tells() {
        assert_eq!(schedule("", ["20", "30"]).of_runs(2), Some(2.0 * (70.0 + AROUND)));
        assert_eq!(schedule("", ["50", "30"]).of_runs(1), Some(80.0 + AROUND));
        assert_eq!(schedule("until = 90", ["50", "30"]).of_runs(1), Some(90.0 + AROUND));
    }

    #[test]
    fn then_the_runs_do() {
        let mut left = schedule("", ["20", "30"]);
        for ended in [100.0, 120.0] {
            left.took(&recorded("none", 1, &[("j0", 0.0, 3.0), ("j1", 40.0, ended)], []).run);
        }
        assert_eq!(left.of_runs(3), Some(3.0 * (110.0 + AROUND)));
        assert_eq!(in_words(330.0), "about 6 min");
        assert_eq!(in_words(12.0), "less than a minute");
    }
}
