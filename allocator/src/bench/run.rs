//! The course of a bench: check, calibrate, run each policy, report.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use bollard::Docker;
use paceline_policy::Variant;
use paceline_policy::limiter::Enforcement;
use paceline_sim::fit::Recording;

use super::allocator_process::Launcher;
use super::args::BenchArgs;
use super::arm::Arm;
use super::calibrate::calibrate;
use super::containers::Containers;
use super::log_tail::log_tail;
use super::machine::Machine;
use super::outcome::{About, ArmFacts, Findings, JobFacts, Judged, Observed, frames, judge};
use super::progress::say;
use super::record::Recorded;
use super::schedule::{Job, Schedule};
use super::stop::{Interrupted, Stop};
use super::{report, stamp, table};
use crate::clock::unix_seconds;
use crate::exit::BadUsage;
use crate::signals::Signals;

/// How a bench ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every job succeeded under every policy and the report is written.
    Done,
    /// Ended by a signal; there is no report, and nothing is left behind.
    Interrupted,
}

/// Runs the bench that `args` describe on `docker`.
///
/// A schedule that cannot be used is a [`ScheduleError`](super::schedule::ScheduleError) inside of
/// the error.
pub async fn run(args: BenchArgs, docker: Docker) -> anyhow::Result<Outcome> {
    let schedule = Schedule::read(&args.schedule)?.under(&args.policies)?;
    let data = args.data.as_deref().map(data_folder).transpose()?;
    let began = unix_seconds();
    let run = run_name(began);
    let signals = Signals::listen().context("cannot listen for signals")?;
    let stop = Stop::new(signals.ending());
    let containers = Containers::new(docker.clone(), run.clone(), data);
    let report = args
        .report
        .clone()
        .unwrap_or_else(|| Path::new("paceline-bench").join(&schedule.name).join("report.html"));
    let machine = Machine::ask(&docker).await?;
    let launcher = Launcher::new(args.host, containers.label());
    let bench = Bench { schedule, report, launcher, containers, stop, machine, began, run };

    let ended = bench.whole(args.json).await;
    if ended.is_err()
        && let Err(left) = bench.containers.remove_all().await
    {
        say(&format!("{left:#}"));
    }
    match ended {
        Err(error) if error.is::<Interrupted>() => Ok(Outcome::Interrupted),
        ended => ended.map(|()| Outcome::Done),
    }
}

struct Bench {
    schedule: Schedule,
    /// The report's file; all others go beside it.
    report: PathBuf,
    launcher: Launcher,
    containers: Containers,
    stop: Stop,
    machine: Machine,
    /// In Unix seconds.
    began: f64,
    run: String,
}

impl Bench {
    async fn whole(&self, json: bool) -> anyhow::Result<()> {
        let jobs = &self.schedule.jobs;
        for job in jobs {
            self.containers.check_image(job).await?;
        }
        let rates = if jobs.iter().any(Job::takes_steps) {
            let folder = self.folder("calibration")?;
            calibrate(jobs, &self.launcher, &self.containers, &self.stop, &folder).await?
        } else {
            vec![None; jobs.len()]
        };
        let facts: Vec<JobFacts> =
            jobs.iter().zip(&rates).map(|(job, rate)| JobFacts::new(job, *rate)).collect();
        let mut records = Vec::new();
        for policy in &self.schedule.policies {
            let record = self.arm(policy, &facts).await;
            records.push(record.with_context(|| format!("policy {policy}"))?);
        }
        let observed: Vec<Observed<'_>> = records.iter().map(Observed::read).collect();
        let calibration: Vec<Recording> =
            frames(&self.folder("calibration")?).into_iter().collect();
        let judged = judge(self.about(facts), &self.arms(), &observed, &calibration);
        self.write(&judged, &observed)?;
        self.print(&judged.findings, json)?;
        succeeded(&judged.findings)
    }

    async fn arm(&self, policy: &str, facts: &[JobFacts]) -> anyhow::Result<Recorded> {
        let params: Vec<String> =
            self.params(policy).iter().map(|(name, value)| format!("{name}={value}")).collect();
        let jobs: Vec<(Job, u64)> =
            facts.iter().map(|facts| (facts.job.clone(), facts.steps.unwrap_or(0))).collect();
        let arm = Arm {
            policy,
            params: &params,
            jobs: &jobs,
            launcher: &self.launcher,
            containers: &self.containers,
            cpus: self.machine.cpus,
            folder: &self.folder(policy)?,
        };
        arm.run(&self.stop).await
    }

    fn params(&self, policy: &str) -> BTreeMap<String, f64> {
        self.schedule.params.get(policy).cloned().unwrap_or_default()
    }

    fn about(&self, jobs: Vec<JobFacts>) -> About {
        About {
            name: self.schedule.name.clone(),
            description: self.schedule.description.clone(),
            run: self.run.clone(),
            date: stamp::date(self.began),
            machine: self.machine.clone(),
            scale: 1.0,
            jobs,
        }
    }

    fn arms(&self) -> Vec<ArmFacts> {
        let arm = |policy: &String| ArmFacts {
            name: policy.clone(),
            policy: policy.clone(),
            variant: Variant::default(),
            enforcement: Enforcement::default(),
            params: self.params(policy),
        };
        self.schedule.policies.iter().map(arm).collect()
    }

    /// Writes the report and the other files beside it.
    fn write(&self, judged: &Judged, observed: &[Observed<'_>]) -> anyhow::Result<()> {
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

    /// A folder beside the report, made if it is not there.
    fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.report.with_file_name(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
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
                    let log = Path::new(&run.folder).join(format!("{name}.log"));
                    wrong.push(format!("{name} under {arm} {failure}\n{}", log_tail(&log)));
                }
            }
            if !run.limits_left.is_empty() {
                wrong.push(format!("policy {} left limits behind", arm.facts.policy));
            }
        }
    }
    ensure!(wrong.is_empty(), wrong.join("\n"));
    Ok(())
}

/// Names a bench on its machine: the milliseconds since 1970.
fn run_name(began: f64) -> String {
    let since = Duration::try_from_secs_f64(began).unwrap_or_default();
    format!("{:x}", since.as_millis())
}

/// The absolute path of the folder that jobs see as /data.
fn data_folder(path: &Path) -> Result<String, BadUsage> {
    let unusable = |why: &dyn Display| BadUsage(format!("--data {}: {why}", path.display()));
    let folder = path.canonicalize().map_err(|error| unusable(&error))?;
    if !folder.is_dir() {
        return Err(unusable(&"not a folder"));
    }
    folder.into_os_string().into_string().map_err(|_| unusable(&"the path is not UTF-8"))
}
