//! The promise of the policy `paceline`, seen from outside: no job ends later than under equal sharing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use tokio::task::JoinSet;

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

/// The interval of the samples of idle time.
const INTERVAL: Duration = Duration::from_millis(100);
/// Clock ticks in a second in `/proc/stat`: Linux always shows 100 to programs.
const TICKS: f64 = 100.0;

/// A Unix time, and the idle time of a CPU on average since the machine booted, both in seconds.
type Sample = (f64, f64);

/// The machine's idle CPU time, sampled in the background until it is dropped.
pub(crate) struct Idle {
    samples: Arc<Mutex<Vec<Sample>>>,
    _sampler: JoinSet<()>,
}

impl Idle {
    pub(crate) fn watch() -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let mut sampler = JoinSet::new();
        let sampled = Arc::clone(&samples);
        sampler.spawn(async move {
            loop {
                sampled.lock().unwrap_or_else(PoisonError::into_inner).extend(sample());
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Self { samples, _sampler: sampler }
    }

    /// The idle time of a CPU on average between two Unix times, in seconds.
    fn between(&self, from: f64, to: f64) -> anyhow::Result<f64> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let before = samples.iter().rfind(|(time, _)| *time <= from);
        let after = samples.iter().find(|(time, _)| *time >= to).or(samples.last());
        let ((_, before), (_, after)) = before.zip(after).context("idle time is sampled")?;
        Ok(after - before)
    }
}

fn sample() -> Option<Sample> {
    let now = UNIX_EPOCH.elapsed().ok()?;
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let cpus = text.lines().filter(|line| line.starts_with("cpu")).count().checked_sub(1)?;
    // Of the fields of the first line, the fourth is idle time, the fifth is waiting for I/O.
    let fields = text.lines().next()?.split_whitespace().skip(4).take(2);
    let idle: f64 = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    let cpus = f64::from(u32::try_from(cpus).ok()?);
    Some((now.as_secs_f64(), idle / TICKS / cpus))
}

/// Checks that no honest job ended much later than if all jobs had shared the machine equally.
///
/// A job of s steps then ends once every job has taken s steps, or all of its own if these are fewer.
/// The time of that is a part of the time in which all steps of all jobs were taken, but for the time in
/// which CPUs were idle: equal sharing leaves none idle.
pub(crate) fn ensure_kept(jobs: &[Ended<'_>], idle: &Idle) -> anyhow::Result<()> {
    let began = jobs.iter().map(|job| job.first).fold(f64::INFINITY, f64::min);
    let last = jobs.iter().map(|job| job.last).fold(began, f64::max);
    let idle = idle.between(began, last)?;
    let all = last - began - idle;
    let steps: f64 = jobs.iter().map(|job| job.steps).sum();
    for job in jobs.iter().filter(|job| job.honest) {
        let taken: f64 = jobs.iter().map(|other| other.steps.min(job.steps)).sum();
        let (end, fair) = (job.last - began, all * taken / steps);
        let name = job.name;
        anyhow::ensure!(
            end <= LATE * fair + SECONDS,
            "{name} ended after {end:.1} s, fair are {fair:.1} s of {all:.1} s, and {idle:.1} s were idle"
        );
    }
    Ok(())
}
