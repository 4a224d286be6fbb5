//! One run: the schedule's jobs under one arm.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::try_join_all;
use paceline_api::clock::unix_seconds;
use paceline_api::labels::WORK;
use paceline_api::samples::Sample;
use tokio::time::{Instant, sleep_until};

use super::allocator_process::{AllocatorProcess, Launcher};
use super::checkpoints;
use super::containers::{Containers, End, Extra, LimitLeft, State};
use super::host::{Before, RunEvidence};
use super::moves::moves;
use super::probe::{Probe, mean_speed};
use super::progress::{Progress, words};
use super::record::{Host, JobRun, Recorded, Run, SpeedSample};
use super::schedule::{Arm, Job};
use super::stop::Stop;

/// How often the jobs' states are read. The times of their ends come from the engine, so they stay exact.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The share of a waiting job under the oracle, in CPUs: no engine accepts less.
pub(crate) const ORACLE_MIN_CPUS: f64 = 0.01;

/// What one run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) arm: &'a Arm,
    pub(crate) repeat: u32,
    /// Each job, with its arrival in this repeat, and its number of steps.
    pub(crate) jobs: &'a [(Job, u64)],
    /// Seconds after which running jobs are stopped.
    pub(crate) until: Option<f64>,
    pub(crate) launcher: &'a Launcher,
    pub(crate) containers: &'a Containers,
    /// The machine's CPUs.
    pub(crate) cpus: i64,
    /// Where its files go: an empty folder.
    pub(crate) folder: &'a Path,
}

/// How the jobs ended.
struct Ended {
    /// In Unix seconds.
    began: f64,
    ends: Vec<End>,
}

impl Execution<'_> {
    /// Runs the jobs. Its allocator and its containers are removed in any case.
    pub(crate) async fn run(
        &self,
        mut progress: Progress,
        stop: &Stop,
    ) -> anyhow::Result<Recorded> {
        let proc = Path::new("/proc");
        let probe = Probe::start();
        let before = Before::read(proc)?;
        let mut allocator = self.launcher.start(self.arm, self.folder)?;
        let mut samples = Vec::new();
        let ended = self.jobs(&mut allocator, &mut samples, &mut progress, stop).await;
        let speed_samples = probe.end();
        // The allocator ends while the containers still exist, so that limits it left can be seen.
        let stopped = allocator.stop().await;
        let left = if ended.is_ok() { self.collect().await } else { Ok(Vec::new()) };
        let removed = self.containers.remove_all().await;
        let Ended { began, ends } = ended?;
        stopped?;
        removed?;
        checkpoints::clear(self.folder)?;
        let job = |((job, _), end): (&(Job, u64), &End)| JobRun {
            job: job.name.clone(),
            arrived: job.arrive,
            ended: end.at - began,
            exit_code: end.exit_code,
            out_of_memory: end.out_of_memory,
        };
        let jobs: Vec<JobRun> = self.jobs.iter().zip(&ends).map(job).collect();
        let moves = moves(self.folder, began)?;
        let evidence = RunEvidence { began, jobs: &jobs, moves: &moves, samples: &samples };
        let host = before.since(proc, &evidence)?;
        let host = Host { speed: mean_speed(&speed_samples), ..host };
        let speed_samples = speed_samples
            .into_iter()
            .map(|sample| SpeedSample { t: sample.t - began, ..sample })
            .collect();
        let run = Run {
            arm: self.arm.name.clone(),
            repeat: self.repeat,
            began,
            jobs,
            limits_left: left?,
            host,
            speed_samples,
            moves,
        };
        Ok(Recorded { run, samples, folder: self.folder.to_owned() })
    }

    async fn jobs(
        &self,
        allocator: &mut AllocatorProcess,
        samples: &mut Vec<Sample>,
        progress: &mut Progress,
        stop: &Stop,
    ) -> anyhow::Result<Ended> {
        samples.extend(stop.unless(allocator.ready()).await?);
        for (job, steps) in self.jobs {
            stop.check()?;
            // Must not be interrupted: the engine could create the container after all were removed.
            self.containers.create(job, &self.extra(job, *steps)?).await?;
        }
        let (began, start) = (unix_seconds(), Instant::now());
        let ends = stop.unless(self.watch(start, allocator, samples, progress)).await?;
        Ok(Ended { began, ends })
    }

    /// What the job's container gets in addition to the schedule's job.
    fn extra(&self, job: &Job, steps: u64) -> anyhow::Result<Extra> {
        let mut labels = BTreeMap::new();
        // Only the oracle uses it, but then the frames of every arm show the job's remaining work.
        if let Some(work) = job.work {
            labels.insert(WORK.to_owned(), work.to_string());
        }
        if self.arm.is_oracle() {
            let least = "paceline.min-cpus";
            if !job.labels.contains_key(least) {
                labels.insert(least.to_owned(), ORACLE_MIN_CPUS.to_string());
            }
        }
        Ok(Extra { steps, labels, checkpoints: checkpoints::make(self.folder, job)? })
    }

    /// Starts the jobs at their arrivals, and waits until all have ended.
    async fn watch(
        &self,
        start: Instant,
        allocator: &mut AllocatorProcess,
        samples: &mut Vec<Sample>,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<End>> {
        let mut arrivals: Vec<&Job> = self.jobs.iter().map(|(job, _)| job).collect();
        // In reverse, so that the next job is the last element; ties keep the file's order.
        arrivals.reverse();
        arrivals.sort_by(|a, b| b.arrive.total_cmp(&a.arrive));
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let until = self.until.map(after);
        let mut known = BTreeMap::new();
        loop {
            let now = Instant::now();
            let mut due = Vec::new();
            while let Some(job) = arrivals.pop_if(|next| after(next.arrive) <= now) {
                due.push(self.containers.start(job));
            }
            try_join_all(due).await?;
            for sample in allocator.samples()? {
                for job in &sample.jobs {
                    progress.job(&job.id, words(job));
                }
                samples.push(sample);
            }
            let ends = self.ends(&mut known, progress).await?;
            progress.draw();
            if ends.iter().all(Option::is_some) {
                return Ok(ends.into_iter().flatten().collect());
            }
            if until.is_some_and(|until| until <= now) {
                return self.end_now(ends).await;
            }
            let next = arrivals.last().map(|next| after(next.arrive));
            let look = now + POLL_INTERVAL;
            let sooner = [next, until].into_iter().flatten().fold(look, Instant::min);
            sleep_until(sooner).await;
        }
    }

    /// Stops the jobs that have not ended. Their time is up, which counts as success, whatever their
    /// exit code.
    async fn end_now(&self, ends: Vec<Option<End>>) -> anyhow::Result<Vec<End>> {
        let up = End { at: unix_seconds(), exit_code: 0, out_of_memory: false };
        self.containers.stop_all().await?;
        Ok(ends.into_iter().map(|end| end.unwrap_or(up)).collect())
    }

    /// How each job ended, if it has, in the schedule's order.
    async fn ends(
        &self,
        known: &mut BTreeMap<String, End>,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<Option<End>>> {
        let states = self.containers.states(known).await?;
        let mut ends = Vec::new();
        for (job, _) in self.jobs {
            let state = states.get(&job.name).with_context(|| {
                format!("the container of job {} was removed by others", job.name)
            })?;
            let end = match state {
                State::Ended(end) => Some(*end),
                State::Waiting | State::Running => None,
            };
            if let Some(end) = end {
                progress.job(&job.name, format!("ended with exit code {}", end.exit_code));
            }
            ends.push(end);
        }
        Ok(ends)
    }

    /// Returns the limits that the allocator left, and saves each job's log.
    async fn collect(&self) -> anyhow::Result<Vec<LimitLeft>> {
        let left = self.containers.limits_left(self.cpus).await?;
        self.containers.save_logs(self.folder).await.context("cannot save the jobs' logs")?;
        Ok(left)
    }
}
