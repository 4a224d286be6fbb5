//! Measures how fast each job is with the machine for itself, and what limits cost it.
//!
//! A schedule gives work in seconds of the whole machine, so that it means the same on any machine.
//! Here those seconds become steps. What a job loses under a limit, beside the CPU that it takes
//! away, is for the prediction: its frames here are all that is known of that before a policy runs.

mod meter;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use meter::Meter;
use tokio::time::{sleep, timeout};

use super::allocator_process::{AllocatorProcess, Launcher};
use super::checkpoints;
use super::containers::{Containers, Extra, State};
use super::log_tail::log_tail;
use super::progress::{Progress, words};
use super::run::Means;
use super::schedule::{Arm, Job};
use super::stop::Stop;

/// More steps than any calibration sees.
const ENDLESS: u64 = 1_000_000_000;

/// How long a job may take to be measured: data is read, a model built, and then up to 95 s.
const MEASURED_WITHIN: Duration = Duration::from_mins(4);

/// How often a frame is recorded, in seconds: what the jobs are like is fitted to these.
const FRAME_EVERY: f64 = 1.0;

/// The limits that each job is measured under afterwards: the machine over these …
const LIMITS: [i64; 2] = [2, 4];

/// … for so long each: the first of its frames saw the limit change and tells nothing.
const LIMITED_FOR: Duration = Duration::from_secs(6);

/// How often new samples are looked for; they come once a second.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The rate of each of `jobs` in steps per second, in their order; `None` for those whose command
/// takes no steps. Files go into `folder`.
pub(crate) async fn calibrate(
    jobs: &[Job],
    launcher: &Launcher,
    containers: &Containers,
    means: &Means,
    folder: &Path,
) -> anyhow::Result<Vec<Option<f64>>> {
    let arm = Arm::new("none", [("interval".to_owned(), FRAME_EVERY)].into());
    let allocator = launcher.watch(&arm, folder)?;
    let names = jobs.iter().filter(|job| job.takes_steps()).map(|job| job.name.as_str());
    let progress = Progress::begin("calibration, each job alone".to_owned(), names);
    let (stop, cpus) = (&means.stop, means.place.machine.cpus);
    let mut calibration = Calibration { containers, cpus, stop, folder, allocator, progress };
    let rates = calibration.all(jobs).await;
    let stopped = calibration.allocator.stop().await;
    let removed = containers.remove_all().await;
    let rates = rates?;
    stopped?;
    removed?;
    checkpoints::clear(folder)?;
    Ok(rates)
}

struct Calibration<'a> {
    containers: &'a Containers,
    /// The machine's.
    cpus: i64,
    stop: &'a Stop,
    folder: &'a Path,
    allocator: AllocatorProcess,
    progress: Progress,
}

impl Calibration<'_> {
    async fn all(&mut self, jobs: &[Job]) -> anyhow::Result<Vec<Option<f64>>> {
        self.stop.unless(self.allocator.ready()).await?;
        let mut rates: Vec<Option<f64>> = Vec::new();
        for job in jobs {
            let done = jobs.iter().zip(&rates);
            let known =
                done.filter(|(other, _)| job.is_as_fast_as(other)).find_map(|(_, rate)| *rate);
            let rate = match known {
                _ if !job.takes_steps() => None,
                Some(rate) => Some(rate),
                None => Some(self.one(job).await?),
            };
            if let Some(rate) = rate {
                self.progress.job(&job.name, format!("{rate:.1} steps/s"));
                self.progress.draw();
            }
            rates.push(rate);
        }
        Ok(rates)
    }

    async fn one(&mut self, job: &Job) -> anyhow::Result<f64> {
        self.stop.check()?;
        let checkpoints = checkpoints::make(self.folder, job)?;
        let extra = Extra { steps: ENDLESS, checkpoints, ..Extra::default() };
        self.containers.create(job, &extra).await?;
        self.stop.unless(self.containers.start(job)).await?;
        let stop = self.stop;
        let measured = stop.unless(async {
            let rate = timeout(MEASURED_WITHIN, self.measure(job)).await;
            let rate =
                rate.unwrap_or_else(|_| bail!("too few steps within {MEASURED_WITHIN:?}"))?;
            self.limit(job).await?;
            Ok(rate)
        });
        let measured = measured.await;
        let log = self.folder.join(format!("{}.log", job.name));
        self.containers.save_logs(self.folder).await?;
        // It is the only one there is.
        self.containers.remove_all().await?;
        match measured {
            // Its log tells more about a job's failure, and nothing about an interruption.
            Err(error) if self.stop.check().is_ok() => Err(error.context(format!(
                "job {}: no rate was measured\n{}",
                job.name,
                log_tail(&log)
            ))),
            measured => measured,
        }
    }

    async fn measure(&mut self, job: &Job) -> anyhow::Result<f64> {
        let mut meter = Meter::default();
        loop {
            for sample in self.allocator.samples()? {
                let Some(its) = sample.jobs.iter().find(|its| its.id == job.name) else { continue };
                self.progress.job(&job.name, words(its));
                if let Some(rate) = its.steps.and_then(|steps| meter.read(sample.t, steps)) {
                    return Ok(rate);
                }
            }
            self.progress.draw();
            let states = self.containers.states(&mut BTreeMap::new()).await?;
            if let Some(State::Ended(end)) = states.get(&job.name) {
                bail!("it ended with exit code {}", end.exit_code);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Has the job's frames tell how it does under limits.
    async fn limit(&mut self, job: &Job) -> anyhow::Result<()> {
        for part in LIMITS {
            self.progress.job(&job.name, format!("limited to 1/{part} of the machine"));
            self.progress.draw();
            self.containers.limit(job, self.cpus * 1_000_000_000 / part).await?;
            sleep(LIMITED_FOR).await;
        }
        Ok(())
    }
}
