//! The course of one bench: check, calibrate, make every run that is not there yet, report.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use bollard::Docker;

use super::allocator_process::Launcher;
use super::calibrate::{Solo, calibrate};
use super::containers::Containers;
use super::execute::Execution;
use super::log_tail::log_tail;
use super::machine::images;
use super::outcome::{About, ArmFacts, BASELINE, Findings, JobFacts, Judged, Observed, judge};
use super::plan::Planned;
use super::progress::{Progress, say};
use super::record::Recorded;
use super::results::{Anew, CALIBRATION, Place, Results, UNFINISHED};
use super::schedule::{Arm, Job, Schedule};
use super::stop::Stop;
use super::time_left::{TimeLeft, in_words};
use super::{report, table};
use crate::clock::unix_seconds;
use crate::stamp;

/// What benches of one command have in common.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) docker: Docker,
    /// The engine's address for the allocator, where it is not the usual one.
    pub(crate) host: Option<String>,
    /// Without the images, which each bench has of its own.
    pub(crate) place: Place,
    pub(crate) stop: Stop,
}

/// A schedule on its way to a report.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    schedule: &'a Schedule,
    /// The report's file; all others go beside it.
    report: PathBuf,
    results: Results,
    launcher: Launcher,
    containers: Containers,
    means: &'a Means,
}

impl<'a> Bench<'a> {
    /// Finds out whether the bench of `schedule` can be begun or gone on with. Nothing is written.
    pub(crate) async fn open(
        schedule: &'a Schedule,
        report: PathBuf,
        anew: Anew,
        means: &'a Means,
    ) -> anyhow::Result<Self> {
        let folder = report.parent().unwrap_or(Path::new(""));
        let Means { docker, host, place, .. } = means;
        let place = Place { images: images(docker, &schedule.jobs).await?, ..place.clone() };
        let (data, engine) = (place.data.clone(), place.engine.clone());
        let results = Results::open(folder, schedule, place, unix_seconds(), anew)?;
        let (run, nodes) = (results.bench.run.clone(), schedule.nodes.clone());
        let containers = Containers::new(docker.clone(), run, data, nodes.clone());
        let launcher = Launcher::new(host.clone(), containers.label(), nodes, engine);
        Ok(Self { schedule, report, results, launcher, containers, means })
    }

    /// Makes what is left to be made, and reports. What it made on the engine is removed, whether
    /// it succeeds, fails or is interrupted.
    pub(crate) async fn whole(mut self, json: bool) -> anyhow::Result<()> {
        self.results.begin(unix_seconds())?;
        let made = self.made().await;
        if made.is_err()
            && let Err(left) = self.containers.remove_all().await
        {
            say(&format!("{left:#}"));
        }
        let (facts, runs) = made?;
        let observed: Vec<Observed<'_>> =
            runs.iter().map(Observed::read).collect::<anyhow::Result<_>>()?;
        let calibration: Vec<Solo> =
            Solo::read(&self.results.folder().join(CALIBRATION)).into_iter().collect();
        let judged = judge(self.about(facts), &self.arms(), &observed, &calibration);
        self.write(&judged, &observed)?;
        self.print(&judged.findings, json)?;
        succeeded(&judged.findings)
    }

    fn about(&self, jobs: Vec<JobFacts>) -> About {
        let Bench { schedule, results, .. } = self;
        About {
            name: schedule.name.clone(),
            description: schedule.description.clone(),
            run: results.bench.run.clone(),
            date: stamp::date(results.bench.began),
            machine: results.bench.machine().clone(),
            data: results.bench.data(),
            scale: schedule.scale,
            until: schedule.until,
            jobs,
        }
    }

    fn arms(&self) -> Vec<ArmFacts> {
        let facts = |arm: &Arm| ArmFacts {
            name: arm.name.clone(),
            policy: arm.policy.clone(),
            variant: arm.variant,
            enforcement: arm.enforcement,
            migration: arm.migration,
            params: arm.params.clone(),
        };
        self.schedule.arms.iter().map(facts).collect()
    }

    async fn made(&mut self) -> anyhow::Result<(Vec<JobFacts>, Vec<Recorded>)> {
        let mut whole = Vec::new();
        for planned in self.results.planned(self.schedule) {
            let recorded = self.results.whole(&planned)?;
            whole.push((planned, recorded));
        }
        let left = whole.iter().filter(|(_, recorded)| recorded.is_none()).count();
        self.say_what_is_left(whole.len(), left);
        if left > 0 {
            // Those of an earlier start that was killed.
            self.containers.remove_all().await?;
        }
        let rates = self.rates().await?;
        let facts: Vec<JobFacts> = (self.schedule.jobs.iter().zip(&rates))
            .map(|(job, rate)| JobFacts::new(job, *rate))
            .collect();
        let last = whole.iter().map(|(planned, _)| planned.number).max().unwrap_or(0);
        let mut time = TimeLeft::of(self.schedule);
        let (mut left, mut runs) = (left, Vec::new());
        for (planned, recorded) in whole {
            let recorded = if let Some(recorded) = recorded {
                recorded
            } else {
                let progress = self.progress(&planned, last, left, &time);
                let recorded = self.run(&planned, &facts, progress).await;
                left -= 1;
                recorded.with_context(|| format!("run {}", planned.folder()))?
            };
            time.took(&recorded.run);
            runs.push(recorded);
        }
        Ok((facts, runs))
    }

    fn say_what_is_left(&self, all: usize, left: usize) {
        let name = &self.schedule.name;
        if left == 0 {
            say(&format!("{name}: all {all} runs are there; --fresh makes them anew"));
        } else if left < all {
            say(&format!("{name}: {} of {all} runs are there, going on", all - left));
        }
    }

    fn progress(&self, planned: &Planned, last: u32, left: usize, time: &TimeLeft) -> Progress {
        let Planned { number, arm, repeat } = planned;
        let which = match repeat {
            0 => "warm-up".to_owned(),
            repeat => format!("repeat {repeat} of {}", self.schedule.repeats),
        };
        let left = time.of_runs(left).map(|left| format!(", {} left", in_words(left)));
        let name = &self.schedule.name;
        let title =
            format!("{name}: run {number} of {last}, {arm}, {which}{}", left.unwrap_or_default());
        Progress::begin(title, self.schedule.jobs.iter().map(|job| job.name.as_str()))
    }

    /// Each job's rate, as measured now or by an earlier start. What that recorded is for the
    /// prediction, and made anew where it is gone; the runs keep their steps.
    async fn rates(&mut self) -> anyhow::Result<Vec<Option<f64>>> {
        let jobs = &self.schedule.jobs;
        let known = self.results.bench.rates.clone();
        let is_fitted = self.schedule.arms.iter().any(|arm| arm.policy == BASELINE);
        let is_needed = is_fitted || jobs.iter().any(Job::takes_steps);
        if let Some(rates) = known.clone().filter(|_| !is_needed || self.results.has_calibration())
        {
            return Ok(rates);
        }
        let measured = if is_needed {
            let folder = self.results.empty(UNFINISHED)?;
            calibrate(jobs, &self.launcher, &self.containers, self.means, &folder).await?
        } else {
            vec![None; jobs.len()]
        };
        let rates = known.unwrap_or(measured);
        self.results.calibrated(&rates)?;
        Ok(rates)
    }

    async fn run(
        &self,
        planned: &Planned,
        facts: &[JobFacts],
        progress: Progress,
    ) -> anyhow::Result<Recorded> {
        let arm = self.schedule.arms.iter().find(|arm| arm.name == planned.arm);
        let steps = facts.iter().map(|facts| facts.steps.unwrap_or(0));
        let jobs: Vec<(Job, u64)> =
            self.schedule.jobs_of(planned.repeat).into_iter().zip(steps).collect();
        let execution = Execution {
            arm: arm.context("the arm is of this schedule")?,
            repeat: planned.repeat,
            jobs: &jobs,
            until: self.schedule.until,
            launcher: &self.launcher,
            containers: &self.containers,
            cpus: self.means.place.machine.cpus,
            folder: &self.results.empty(&Results::name_of(planned))?,
        };
        let recorded = execution.run(progress, &self.means.stop).await?;
        Results::keep(&recorded)?;
        if let Some(why) = &recorded.run.host.spoiled {
            say(&format!("run {} is disturbed: {why}", planned.folder()));
        }
        Ok(recorded)
    }

    /// Writes the report and the other files beside it.
    fn write(&self, judged: &Judged, observed: &[Observed<'_>]) -> anyhow::Result<()> {
        report::clear(&self.report.with_file_name(report::PICTURES))?;
        for (name, text) in report::files(judged, observed).context("the report cannot be drawn")? {
            let beside = self.report.with_file_name(&name);
            let path = if name == report::PAGE { self.report.clone() } else { beside };
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
                .with_context(|| format!("cannot make the folder of {}", path.display()))?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn print(&self, findings: &Findings, json: bool) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if json {
            serde_json::to_writer_pretty(&mut out, findings)?;
            writeln!(out)?;
            say(&format!("report: {}", self.report.display()));
        } else {
            table::print(findings, &mut out)?;
            writeln!(out, "report: {}", self.report.display())?;
        }
        Ok(())
    }
}

/// Fails if a job did, with the end of its log, or if an allocator left a limit.
fn succeeded(findings: &Findings) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for arm in &findings.arms {
        for run in &arm.runs {
            for (facts, job) in findings.about.jobs.iter().zip(&run.jobs) {
                let (name, arm) = (&facts.job.name, &arm.facts.name);
                if let Some(failure) = &job.failure {
                    let log = log_tail(&Path::new(&run.folder).join(format!("{name}.log")));
                    wrong.push(format!("{name} under {arm} {failure}\n{log}"));
                }
            }
            if !run.limits_left.is_empty() {
                wrong.push(format!("{} left limits behind", run.folder));
            }
        }
    }
    ensure!(wrong.is_empty(), wrong.join("\n"));
    Ok(())
}
