//! The command: several schedules, one after the other.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bollard::Docker;

use super::args::BenchArgs;
use super::machine::Machine;
use super::progress::say;
use super::results::{Anew, Place, Program};
use super::run::{Bench, Means};
use super::schedule::Schedule;
use super::stop::{Interrupted, Stop};
use crate::actuate::originals::Originals;
use crate::exit::BadUsage;
use crate::signals::Signals;

/// How a bench ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every job succeeded in every run and the reports are written.
    Done,
    /// Ended by a signal; what was whole is kept, and nothing is left behind on the engine.
    Interrupted,
}

/// Runs the benches that `args` describe on `docker`.
///
/// A schedule that cannot be used is a [`ScheduleError`](super::schedule::ScheduleError) inside of
/// the error; all are read, and their folders and images looked at, before the first is begun.
pub async fn run(args: BenchArgs, docker: Docker) -> anyhow::Result<Outcome> {
    let schedules = read(&args)?;
    let data = args.data.as_deref().map(data_folder).transpose()?;
    let signals = Signals::listen().context("cannot listen for signals")?;
    let engine = docker.info().await.context("the engine does not describe itself")?;
    let engine = engine.id.context("the engine has no id")?;
    // While it measures, no other allocator is to look after the same containers.
    let _alone = Originals::open(&args.state, &engine, "a bench")?;
    let means = Means {
        host: args.host.clone(),
        place: Place {
            machine: Machine::ask(&docker).await?,
            engine,
            program: Program::this()?,
            data,
            images: BTreeMap::new(),
        },
        stop: Stop::new(signals.ending()),
        docker,
    };
    let benches = open(&args, &schedules, &means).await?;
    let mut failed = Vec::new();
    for (bench, schedule) in benches.into_iter().zip(&schedules) {
        match bench.whole(args.json).await {
            Err(error) if error.is::<Interrupted>() => {
                say(&format!("{}: what is whole is kept; start it again to go on", schedule.name));
                return Ok(Outcome::Interrupted);
            }
            // What one bench is about does not keep the others from being made.
            Err(error) if schedules.len() > 1 => {
                say(&format!("{}: {error:#}", schedule.name));
                failed.push(schedule.name.as_str());
            }
            ended => ended?,
        }
    }
    anyhow::ensure!(failed.is_empty(), "these benches failed: {}", failed.join(", "));
    Ok(Outcome::Done)
}

fn read(args: &BenchArgs) -> anyhow::Result<Vec<Schedule>> {
    let mut schedules: Vec<Schedule> = Vec::new();
    for file in &args.schedules {
        let schedule = Schedule::read(file)?.under(&args.arms)?;
        let schedule = if args.full { schedule.in_full() } else { schedule };
        if schedules.iter().any(|other| other.name == schedule.name) {
            let (file, name) = (file.display(), &schedule.name);
            return Err(BadUsage(format!("{file}: another schedule is called {name}, too")).into());
        }
        schedules.push(schedule);
    }
    if args.report.is_some() && schedules.len() > 1 {
        let problem = "--report names one file, and there are several schedules";
        return Err(BadUsage(problem.to_owned()).into());
    }
    Ok(schedules)
}

/// All benches, none of them begun; the error names each that cannot be.
async fn open<'a>(
    args: &BenchArgs,
    schedules: &'a [Schedule],
    means: &'a Means,
) -> anyhow::Result<Vec<Bench<'a>>> {
    let (mut benches, mut unusable) = (Vec::new(), Vec::new());
    for schedule in schedules {
        match Bench::open(schedule, report_of(args, schedule), anew(args), means).await {
            Ok(bench) => benches.push(bench),
            Err(error) => {
                let BadUsage(why) = error.downcast()?;
                unusable.push(format!("{}: {why}", schedule.name));
            }
        }
    }
    if unusable.is_empty() { Ok(benches) } else { Err(BadUsage(unusable.join("\n")).into()) }
}

fn anew(args: &BenchArgs) -> Anew {
    match (args.fresh, args.redo_spoiled) {
        (true, _) => Anew::All,
        (false, true) => Anew::Spoiled,
        (false, false) => Anew::Nothing,
    }
}

fn report_of(args: &BenchArgs, schedule: &Schedule) -> PathBuf {
    let usual = || Path::new("paceline-bench").join(&schedule.name).join("report.html");
    args.report.clone().unwrap_or_else(usual)
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
