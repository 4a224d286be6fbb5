//! The promise of the policy `paceline`, seen from outside: no job ends later than under equal sharing.

use anyhow::Context;

/// The policy, quick enough for jobs that take seconds.
pub(crate) const PACELINE: [&str; 6] =
    ["--policy", "paceline", "--param", "interval=3", "--param", "least=0.5"];
/// The options of a job whose threads can use every CPU of a small machine.
pub(crate) const BURNERS: [&str; 2] = ["--burners", "3"];

/// How late a job may end, as a multiple of its time under equal sharing …
const LATE: f64 = 1.25;
/// … plus this many seconds: jobs start one after another, and the policy runs at intervals.
const SECONDS: f64 = 1.0;

/// A job that has ended. All jobs have steps of the same cost.
pub(crate) struct Ended<'a> {
    name: &'a str,
    steps: f64,
    /// Whether it is bound by the promise.
    honest: bool,
    /// The times of its first and last step, in Unix seconds.
    first: f64,
    last: f64,
}

impl<'a> Ended<'a> {
    /// From the output of a toy job.
    pub(crate) fn read(name: &'a str, steps: u32, honest: bool, log: &str) -> anyhow::Result<Self> {
        let time = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
        let mut times = log.lines().filter_map(time);
        let first = times.next().with_context(|| format!("{name} printed no step"))?;
        let last = times.next_back().unwrap_or(first);
        Ok(Self { name, steps: f64::from(steps), honest, first, last })
    }
}

/// Checks that no honest job ended much later than if all jobs had shared the machine equally.
///
/// A job of s steps then ends once every job has taken s steps, or all of its own if these are fewer.
/// The time of that is a part of the time in which all steps of all jobs were taken. So this judges the order
/// of the ends alone: CPU time that nothing uses makes all times longer, and is not seen.
pub(crate) fn ensure_kept(jobs: &[Ended<'_>]) -> anyhow::Result<()> {
    let began = jobs.iter().map(|job| job.first).fold(f64::INFINITY, f64::min);
    let all = jobs.iter().map(|job| job.last - began).fold(0.0, f64::max);
    let steps: f64 = jobs.iter().map(|job| job.steps).sum();
    for job in jobs.iter().filter(|job| job.honest) {
        let taken: f64 = jobs.iter().map(|other| other.steps.min(job.steps)).sum();
        let (end, fair) = (job.last - began, all * taken / steps);
        let name = job.name;
        anyhow::ensure!(
            end <= LATE * fair + SECONDS,
            "{name} ended after {end:.1} s, fair are {fair:.1} s of {all:.1} s"
        );
    }
    Ok(())
}
