//! One arm of the bench: the schedule's jobs under one policy.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep_until};

use super::allocator_process::{AllocatorProcess, Launcher};
use super::containers::{Containers, End, LimitLeft, State};
use super::progress::{Progress, words};
use super::record::{Host, JobRun, Recorded, Run};
use super::schedule::Job;
use super::stop::Stop;
use crate::clock::unix_seconds;
use crate::samples::Sample;

/// How often the jobs are looked at. Their ends are told by the engine, not by this.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What an arm is run with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm<'a> {
    pub(crate) policy: &'a str,
    /// Each `name=value`.
    pub(crate) params: &'a [String],
    /// Each job with its number of steps.
    pub(crate) jobs: &'a [(Job, u64)],
    pub(crate) launcher: &'a Launcher,
    pub(crate) containers: &'a Containers,
    /// The machine's CPUs.
    pub(crate) cpus: i64,
    /// Where its files go.
    pub(crate) folder: &'a Path,
}

impl Arm<'_> {
    /// Runs the arm; whatever happens, neither its allocator nor its containers are left.
    pub(crate) async fn run(&self, stop: &Stop) -> anyhow::Result<Recorded> {
        let mut allocator = self.launcher.start(self.policy, self.params, self.folder)?;
        let run = self.jobs(&mut allocator, stop).await;
        // The allocator ends while the containers exist, so that what it left can be seen.
        let stopped = allocator.stop().await;
        let looked = if run.is_ok() { self.look_back().await } else { Ok(Vec::new()) };
        let removed = self.containers.remove_all().await;
        let run = run?;
        stopped?;
        removed?;
        let mut run = run;
        run.run.limits_left = looked?;
        Ok(run)
    }

    async fn jobs(
        &self,
        allocator: &mut AllocatorProcess,
        stop: &Stop,
    ) -> anyhow::Result<Recorded> {
        let mut samples = stop.unless(allocator.ready()).await?;
        for (job, steps) in self.jobs {
            stop.check()?;
            // Not to be abandoned: the engine could still make it after everything was removed.
            self.containers.create(job, *steps).await?;
        }
        let (began, start) = (unix_seconds(), Instant::now());
        let ends = stop.unless(self.watch(start, allocator, &mut samples)).await?;
        let job = |((job, _), end): (&(Job, u64), &End)| JobRun {
            job: job.name.clone(),
            arrived: job.arrive,
            ended: end.at - began,
            exit_code: end.exit_code,
            out_of_memory: end.out_of_memory,
        };
        let run = Run {
            arm: self.policy.to_owned(),
            repeat: 1,
            began,
            jobs: self.jobs.iter().zip(&ends).map(job).collect(),
            limits_left: Vec::new(),
            host: Host::default(),
            moves: Vec::new(),
        };
        Ok(Recorded { run, samples, folder: self.folder.to_owned() })
    }

    /// Starts the jobs when they arrive, and waits until all have ended.
    async fn watch(
        &self,
        start: Instant,
        allocator: &mut AllocatorProcess,
        samples: &mut Vec<Sample>,
    ) -> anyhow::Result<Vec<End>> {
        let names = self.jobs.iter().map(|(job, _)| job.name.as_str());
        let mut progress = Progress::begin(format!("policy {}", self.policy), names);
        let mut arrivals: Vec<&Job> = self.jobs.iter().map(|(job, _)| job).collect();
        arrivals.sort_by(|a, b| b.arrive.total_cmp(&a.arrive));
        let due = |job: &Job| start + Duration::from_secs_f64(job.arrive);
        loop {
            let now = Instant::now();
            while let Some(job) = arrivals.pop_if(|next| due(next) <= now) {
                self.containers.start(job).await?;
            }
            for sample in allocator.samples()? {
                for job in &sample.jobs {
                    progress.job(&job.id, words(job));
                }
                samples.push(sample);
            }
            let mut ends = Vec::new();
            for (job, _) in self.jobs {
                if let State::Ended(end) = self.containers.state(job).await? {
                    progress.job(&job.name, format!("ended with exit code {}", end.exit_code));
                    ends.push(end);
                }
            }
            progress.draw();
            if ends.len() == self.jobs.len() {
                return Ok(ends);
            }
            let next = arrivals.last().map(|next| due(next));
            let look = now + LOOK_EVERY;
            sleep_until(next.map_or(look, |next| next.min(look))).await;
        }
    }

    /// The limits that are left; also saves each job's log.
    async fn look_back(&self) -> anyhow::Result<Vec<LimitLeft>> {
        let mut left = Vec::new();
        for (job, _) in self.jobs {
            left.extend(self.containers.limit_left(job, self.cpus).await?);
            let log = self.folder.join(format!("{}.log", job.name));
            self.containers.save_log(job, &log).await.context("a job's log is lost")?;
        }
        Ok(left)
    }
}
