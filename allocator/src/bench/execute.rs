//! One run: the schedule's jobs under one arm.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep_until};

use super::allocator_process::{AllocatorProcess, Launcher};
use super::checkpoints;
use super::containers::{Containers, End, Extra, LimitLeft, State};
use super::host::{Before, Told};
use super::moves::moves;
use super::probe::{Probe, mean_speed};
use super::progress::{Progress, words};
use super::record::{Beat, Host, JobRun, Recorded, Run};
use super::schedule::{Arm, Job};
use super::stop::Stop;
use crate::clock::unix_seconds;
use crate::labels::WORK;
use crate::samples::Sample;

/// How often the jobs are looked at. Their ends are told by the engine, not by this.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The least that jobs which wait have under the oracle, in CPUs: no engine takes less.
pub(crate) const ORACLES_LEAST: f64 = 0.01;

/// What a run is made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) arm: &'a Arm,
    pub(crate) repeat: u32,
    /// Each job, as it arrives in this repeat, with its number of steps.
    pub(crate) jobs: &'a [(Job, u64)],
    /// Seconds after which jobs that still run are stopped.
    pub(crate) until: Option<f64>,
    pub(crate) launcher: &'a Launcher,
    pub(crate) containers: &'a Containers,
    /// The machine's CPUs.
    pub(crate) cpus: i64,
    /// Where its files go: an empty folder.
    pub(crate) folder: &'a Path,
}

/// What came of the jobs.
struct Ended {
    /// In Unix seconds.
    began: f64,
    ends: Vec<End>,
}

impl Execution<'_> {
    /// Makes the run; whatever happens, neither its allocator nor its containers are left.
    pub(crate) async fn run(
        &self,
        mut progress: Progress,
        stop: &Stop,
    ) -> anyhow::Result<Recorded> {
        let proc = Path::new("/proc");
        let probe = Probe::start();
        let before = Before::look(proc)?;
        let mut allocator = self.launcher.start(self.arm, self.folder)?;
        let mut samples = Vec::new();
        let ended = self.jobs(&mut allocator, &mut samples, &mut progress, stop).await;
        let beats = probe.end();
        // The allocator ends while the containers exist, so that what it left can be seen.
        let stopped = allocator.stop().await;
        let looked = if ended.is_ok() { self.look_back().await } else { Ok(Vec::new()) };
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
        let told = Told { began, jobs: &jobs, moves: &moves, samples: &samples };
        let host = before.since(proc, &told)?;
        let host = Host { speed: mean_speed(&beats), ..host };
        let beats = beats.into_iter().map(|beat| Beat { t: beat.t - began, ..beat }).collect();
        let run = Run {
            arm: self.arm.name.clone(),
            repeat: self.repeat,
            began,
            jobs,
            limits_left: looked?,
            host,
            beats,
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
            // Not to be abandoned: the engine could still make it after everything was removed.
            self.containers.create(job, &self.extra(job, *steps)?).await?;
        }
        let (began, start) = (unix_seconds(), Instant::now());
        let ends = stop.unless(self.watch(start, allocator, samples, progress)).await?;
        Ok(Ended { began, ends })
    }

    /// What the job's container has beside what the schedule says.
    fn extra(&self, job: &Job, steps: u64) -> anyhow::Result<Extra> {
        let mut labels = BTreeMap::new();
        // The oracle alone goes by it; frames then say in every arm how far the job had come.
        if let Some(work) = job.work {
            labels.insert(WORK.to_owned(), work.to_string());
        }
        if self.arm.is_oracle() {
            let least = "paceline.min-cpus";
            if !job.labels.contains_key(least) {
                labels.insert(least.to_owned(), ORACLES_LEAST.to_string());
            }
        }
        Ok(Extra { steps, labels, checkpoints: checkpoints::make(self.folder, job)? })
    }

    /// Starts the jobs when they arrive, and waits until all have ended.
    async fn watch(
        &self,
        start: Instant,
        allocator: &mut AllocatorProcess,
        samples: &mut Vec<Sample>,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<End>> {
        let mut arrivals: Vec<&Job> = self.jobs.iter().map(|(job, _)| job).collect();
        // The last comes first; of several at once, the last of the file.
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
            let look = now + LOOK_EVERY;
            let sooner = [next, until].into_iter().flatten().fold(look, Instant::min);
            sleep_until(sooner).await;
        }
    }

    /// Stops the jobs that have not ended. Their time is up: that is a good end, whatever they make
    /// of the signal.
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
            let state = states
                .get(&job.name)
                .with_context(|| format!("job {}: somebody has removed its container", job.name))?;
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

    /// The limits that are left; also saves each job's log.
    async fn look_back(&self) -> anyhow::Result<Vec<LimitLeft>> {
        let left = self.containers.limits_left(self.cpus).await?;
        self.containers.save_logs(self.folder).await.context("a job's log is lost")?;
        Ok(left)
    }
}
