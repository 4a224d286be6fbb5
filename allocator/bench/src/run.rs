//! One bench: check, calibrate, run what is incomplete, report.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use paceline_api::clock::unix_seconds;
use paceline_api::stamp;

use super::allocator_process::Launcher;
use super::analysis::{Analysis, analyse};
use super::calibrate::{SoloRun, calibrate};
use super::containers::Containers;
use super::context::BenchContext;
use super::execute::Execution;
use super::log_tail::log_tail;
use super::machine::images;
use super::outcome::{About, BASELINE, Findings, JobFacts, Observed};
use super::plan::Planned;
use super::progress::{Progress, say};
use super::record::Recorded;
use super::results::{CALIBRATION, Environment, Rerun, Results, UNFINISHED};
use super::schedule::{Job, Schedule};
use super::time_left::{TimeLeft, in_words};
use super::{report, table};

/// One schedule with its results.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    schedule: &'a Schedule,
    /// The report's file; all other files go beside it.
    report: PathBuf,
    results: Results,
    launcher: Launcher,
    containers: Containers,
    context: &'a BenchContext,
}

impl<'a> Bench<'a> {
    /// Checks whether the bench of `schedule` can begin or continue. Writes nothing.
    pub(crate) async fn open(
        schedule: &'a Schedule,
        report: PathBuf,
        rerun: Rerun,
        context: &'a BenchContext,
    ) -> anyhow::Result<Self> {
        let folder = report.parent().unwrap_or(Path::new(""));
        let BenchContext { runtime, host, environment, .. } = context;
        let images = images(runtime, &schedule.jobs).await?;
        let environment = Environment { images, ..environment.clone() };
        let (data, engine) = (environment.data.clone(), environment.engine.clone());
        let results = Results::open(folder, schedule, environment, unix_seconds(), rerun)?;
        let (run, nodes) = (results.bench.run.clone(), schedule.nodes.clone());
        let containers = Containers::new(runtime.clone(), run, data, nodes.clone());
        let launcher = Launcher::new(host.clone(), containers.label(), nodes, engine);
        Ok(Self { schedule, report, results, launcher, containers, context })
    }

    /// Runs what is incomplete, and reports. Removes its containers, whether it succeeds, fails or is
    /// interrupted.
    pub(crate) async fn complete(mut self, json: bool) -> anyhow::Result<()> {
        self.results.begin(unix_seconds())?;
        let done = self.run_all().await;
        if done.is_err()
            && let Err(left) = self.containers.remove_all().await
        {
            say(&format!("{left:#}"));
        }
        let (facts, runs) = done?;
        let observed: Vec<Observed<'_>> =
            runs.iter().map(Observed::read).collect::<anyhow::Result<_>>()?;
        let calibration: Vec<SoloRun> =
            SoloRun::read(&self.results.folder().join(CALIBRATION)).into_iter().collect();
        let analysis = analyse(self.about(facts), &self.schedule.arms, &observed, &calibration);
        self.write(&analysis, &observed)?;
        self.print(&analysis.findings, json)?;
        check_success(&analysis.findings)
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

    async fn run_all(&mut self) -> anyhow::Result<(Vec<JobFacts>, Vec<Recorded>)> {
        let mut all = Vec::new();
        for planned in self.results.planned(self.schedule) {
            let recorded = self.results.completed(&planned)?;
            all.push((planned, recorded));
        }
        let left = all.iter().filter(|(_, recorded)| recorded.is_none()).count();
        self.say_what_is_left(all.len(), left);
        if left > 0 {
            // Removes the containers of an earlier start that was killed.
            self.containers.remove_all().await?;
        }
        let rates = self.rates().await?;
        let facts: Vec<JobFacts> = (self.schedule.jobs.iter().zip(&rates))
            .map(|(job, rate)| JobFacts::new(job, *rate))
            .collect();
        let last = all.iter().map(|(planned, _)| planned.number).max().unwrap_or(0);
        let mut time = TimeLeft::new(self.schedule);
        let (mut left, mut runs) = (left, Vec::new());
        for (planned, recorded) in all {
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
            say(&format!("{name}: all {all} runs are complete; --fresh repeats them"));
        } else if left < all {
            say(&format!("{name}: {} of {all} runs are complete; continuing", all - left));
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

    /// Each job's rate, measured now or by an earlier start. If the recordings of an earlier start are gone, it
    /// measures again for the prediction; the runs keep their numbers of steps.
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
            let folder = self.results.empty_folder(UNFINISHED)?;
            calibrate(jobs, &self.launcher, &self.containers, self.context, &folder).await?
        } else {
            vec![None; jobs.len()]
        };
        let rates = known.unwrap_or(measured);
        self.results.save_calibration(&rates)?;
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
            arm: arm.context("the planned arm is not in this schedule")?,
            repeat: planned.repeat,
            jobs: &jobs,
            until: self.schedule.until,
            launcher: &self.launcher,
            containers: &self.containers,
            cpus: self.context.environment.machine.cpus,
            folder: &self.results.empty_folder(&Results::name_of(planned))?,
        };
        let recorded = execution.run(progress, &self.context.stop).await?;
        Results::save_run(&recorded)?;
        if let Some(why) = &recorded.run.host.spoiled {
            say(&format!("run {} is disturbed: {why}", planned.folder()));
        }
        Ok(recorded)
    }

    /// Writes the report and the other files beside it.
    fn write(&self, analysis: &Analysis, observed: &[Observed<'_>]) -> anyhow::Result<()> {
        report::clear(&self.report.with_file_name(report::PICTURES))?;
        for (name, text) in report::files(analysis, observed).context("cannot draw the report")? {
            let beside = self.report.with_file_name(&name);
            let path = if name == report::PAGE { self.report.clone() } else { beside };
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
                .with_context(|| format!("cannot create the folder of {}", path.display()))?;
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

/// Fails if a job failed, with the end of its log, or if an allocator left a limit.
fn check_success(findings: &Findings) -> anyhow::Result<()> {
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
                wrong.push(format!("the allocator of {} left limits on containers", run.folder));
            }
        }
    }
    ensure!(wrong.is_empty(), wrong.join("\n"));
    Ok(())
}
