//! The calibration: measures how fast each job is alone on the machine.
//!
//! A schedule gives work in seconds of the whole machine, so that it means the same on any machine.
//! The calibration converts those seconds to steps. Its frames also show how much of the machine a job
//! can use, which the prediction needs. A job whose command takes no steps runs for these frames only.

mod meter;
mod solo;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use meter::Meter;
pub(crate) use solo::SoloRun;
use tokio::time::{Instant, sleep, timeout};

use super::allocator_process::{AllocatorProcess, Launcher};
use super::checkpoints;
use super::containers::{Containers, Extra, State};
use super::context::BenchContext;
use super::log_tail::log_tail;
use super::probe::{Probe, mean_speed};
use super::progress::{Progress, words};
use super::schedule::{Arm, Job};
use super::stop::Stop;

/// More steps than any job takes during its calibration.
const ENDLESS_STEPS: u64 = 1_000_000_000;

/// How long a job may take to be measured: data is read, a model built, and then up to 95 s.
const MEASURE_TIMEOUT: Duration = Duration::from_mins(4);
/// Advice for a job that reports, but no steps.
const NO_STEPS_ADVICE: &str = "if its log counts samples, give the sidecar --batch-size, \
                         or replace {steps} in the command by a number of steps";

/// How often a frame is recorded, in seconds. The jobs' models are fitted to these frames. A frame counts
/// batches from the first sample after the previous frame on, which is a second later.
const FRAME_INTERVAL: f64 = 2.0;

/// How long a job without steps is recorded, from its first report on …
const WATCH_AFTER_REPORT: Duration = Duration::from_secs(15);

/// … and at most, from its start on: it may never report.
const MAX_WATCH: Duration = Duration::from_secs(90);

/// How often new samples are read; they come once a second.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The rate of each of `jobs` in steps per second, in their order; `None` for those whose command
/// takes no steps. Files go into `folder`.
pub(crate) async fn calibrate(
    jobs: &[Job],
    launcher: &Launcher,
    containers: &Containers,
    context: &BenchContext,
    folder: &Path,
) -> anyhow::Result<Vec<Option<f64>>> {
    let arm = Arm::new("none", [("interval".to_owned(), FRAME_INTERVAL)].into());
    let allocator = launcher.watch(&arm, folder)?;
    let names = jobs.iter().map(|job| job.name.as_str());
    let progress = Progress::begin("calibration, each job alone".to_owned(), names);
    let stop = &context.stop;
    let speeds = BTreeMap::new();
    let mut calibration = Calibration { containers, stop, folder, allocator, progress, speeds };
    let rates = calibration.all(jobs).await;
    let stopped = calibration.allocator.stop().await;
    let removed = containers.remove_all().await;
    let rates = rates?;
    stopped?;
    removed?;
    checkpoints::clear(folder)?;
    solo::write(&calibration.speeds, folder)?;
    Ok(rates)
}

struct Calibration<'a> {
    containers: &'a Containers,
    stop: &'a Stop,
    folder: &'a Path,
    allocator: AllocatorProcess,
    progress: Progress,
    /// How fast the machine was during each job's measurement.
    speeds: BTreeMap<String, f64>,
}

impl Calibration<'_> {
    async fn all(&mut self, jobs: &[Job]) -> anyhow::Result<Vec<Option<f64>>> {
        self.stop.unless(self.allocator.ready()).await?;
        let mut rates: Vec<Option<f64>> = Vec::new();
        for job in jobs {
            let mut done = jobs.iter().zip(&rates);
            let rate = match done.find(|(other, _)| job.is_as_fast_as(other)) {
                Some((_, rate)) => *rate,
                None => self.one(job).await?,
            };
            let word = rate.map_or("measured".to_owned(), |rate| format!("{rate:.1} steps/s"));
            self.progress.job(&job.name, word);
            self.progress.draw();
            rates.push(rate);
        }
        Ok(rates)
    }

    async fn one(&mut self, job: &Job) -> anyhow::Result<Option<f64>> {
        self.stop.check()?;
        let checkpoints = checkpoints::make(self.folder, job)?;
        let extra = Extra { steps: ENDLESS_STEPS, checkpoints, ..Extra::default() };
        self.containers.create(job, &extra).await?;
        self.stop.unless(self.containers.start(job)).await?;
        let (stop, probe) = (self.stop, Probe::start());
        let measured = stop.unless(async {
            if !job.takes_steps() {
                timeout(MAX_WATCH, self.watch(job)).await.unwrap_or(Ok(()))?;
                return Ok(None);
            }
            let rate = timeout(MEASURE_TIMEOUT, self.measure(job)).await;
            rate.unwrap_or_else(|_| {
                bail!("too few steps within {MEASURE_TIMEOUT:?}: {NO_STEPS_ADVICE}")
            })
            .map(Some)
        });
        let measured = measured.await;
        self.speeds.extend(mean_speed(&probe.end()).map(|speed| (job.name.clone(), speed)));
        let log = self.folder.join(format!("{}.log", job.name));
        self.containers.save_logs(self.folder).await?;
        // This job's container is the only one that exists.
        self.containers.remove_all().await?;
        match measured {
            // The log explains a job's failure, but not an interruption.
            Err(error) if self.stop.check().is_ok() => {
                Err(error.context(format!("cannot calibrate job {}\n{}", job.name, log_tail(&log))))
            }
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
            if let Some(exit_code) = self.ended(job).await? {
                bail!("it ended with exit code {exit_code}");
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Lets the allocator record frames of the job while it runs, from its first report on.
    async fn watch(&mut self, job: &Job) -> anyhow::Result<()> {
        let mut reported: Option<Instant> = None;
        while reported.is_none_or(|at| at.elapsed() < WATCH_AFTER_REPORT) {
            for sample in self.allocator.samples()? {
                let Some(its) = sample.jobs.iter().find(|its| its.id == job.name) else { continue };
                self.progress.job(&job.name, words(its));
                if its.loss.is_some() || its.steps.is_some() {
                    reported.get_or_insert_with(Instant::now);
                }
            }
            self.progress.draw();
            match self.ended(job).await? {
                None => sleep(POLL_INTERVAL).await,
                Some(0) => return Ok(()),
                Some(exit_code) => bail!("it ended with exit code {exit_code}"),
            }
        }
        Ok(())
    }

    /// The exit code of a job that has ended.
    async fn ended(&self, job: &Job) -> anyhow::Result<Option<i64>> {
        let states = self.containers.states(&mut BTreeMap::new()).await?;
        let Some(State::Ended(end)) = states.get(&job.name) else { return Ok(None) };
        Ok(Some(end.exit_code))
    }
}
