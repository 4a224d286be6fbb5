//! `paceline bench`: several schedules, one after the other.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Context;
use paceline_api::signals::Signals;
use paceline_api::usage::BadUsage;
use paceline_node::limits::originals::Originals;
use paceline_runtime::Runtime;

use crate::args::BenchArgs;
use crate::context::BenchContext;
use crate::machine::Machine;
use crate::progress::say;
use crate::results::{Environment, Program, Rerun};
use crate::run::Bench;
use crate::schedule::Schedule;
use crate::stop::{Interrupted, Stop};

/// How a bench ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every job succeeded in every run and the reports are written.
    Done,
    /// Ended by a signal. Completed runs are kept, and no container is left on the engine.
    Interrupted,
}

/// Runs the benches that `args` describe on the engine `runtime`.
///
/// Reads all schedules and checks their folders and images before it starts the first. An invalid
/// schedule is a [`ScheduleError`](crate::schedule::ScheduleError) inside the error.
pub async fn run(args: BenchArgs, runtime: Runtime) -> anyhow::Result<Outcome> {
    let schedules = read(&args)?;
    let data = args.data.as_deref().map(data_folder).transpose()?;
    let signals = Signals::listen().context("cannot listen for signals")?;
    let engine = runtime.describe().await.context("cannot ask the engine about itself")?;
    let engine = engine.id.context("the engine reports no id")?;
    // While the bench measures, no other allocator may manage the same containers.
    let _alone = Originals::open(&args.state, &engine, "a bench")?;
    let context = BenchContext {
        host: args.host.clone(),
        environment: Environment {
            machine: Machine::ask(&runtime).await?,
            engine,
            program: Program::this()?,
            data,
            images: BTreeMap::new(),
        },
        stop: Stop::new(signals.ending()),
        runtime,
    };
    let benches = open(&args, &schedules, &context).await?;
    let mut failed = Vec::new();
    for (bench, schedule) in benches.into_iter().zip(&schedules) {
        match bench.complete(args.json).await {
            Err(error) if error.is::<Interrupted>() => {
                let name = &schedule.name;
                say(&format!("{name}: completed runs are kept; start the bench again to continue"));
                return Ok(Outcome::Interrupted);
            }
            // The failure of one bench does not stop the others.
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
            let problem = format!("duplicate schedule name {name:?}: another file has it already");
            return Err(BadUsage(format!("{file}: {problem}")).into());
        }
        schedules.push(schedule);
    }
    if args.report.is_some() && schedules.len() > 1 {
        let problem =
            "--report names one file, but there are several schedules: omit it, or run one";
        return Err(BadUsage(problem.to_owned()).into());
    }
    Ok(schedules)
}

/// All benches, not started yet. The error names each that cannot start.
async fn open<'a>(
    args: &BenchArgs,
    schedules: &'a [Schedule],
    context: &'a BenchContext,
) -> anyhow::Result<Vec<Bench<'a>>> {
    let (mut benches, mut unusable) = (Vec::new(), Vec::new());
    for schedule in schedules {
        match Bench::open(schedule, report_of(args, schedule), rerun(args), context).await {
            Ok(bench) => benches.push(bench),
            Err(error) => {
                let BadUsage(why) = error.downcast()?;
                unusable.push(format!("{}: {why}", schedule.name));
            }
        }
    }
    if unusable.is_empty() { Ok(benches) } else { Err(BadUsage(unusable.join("\n")).into()) }
}

fn rerun(args: &BenchArgs) -> Rerun {
    match (args.fresh, args.redo_spoiled) {
        (true, _) => Rerun::All,
        (false, true) => Rerun::Spoiled,
        (false, false) => Rerun::Nothing,
    }
}

fn report_of(args: &BenchArgs, schedule: &Schedule) -> PathBuf {
    let usual = || Path::new("paceline-bench").join(&schedule.name).join("report.html");
    args.report.clone().unwrap_or_else(usual)
}

/// The absolute path of the folder that jobs see as `/data`.
fn data_folder(path: &Path) -> Result<String, BadUsage> {
    let unusable =
        |why: &dyn Display| BadUsage(format!("cannot use --data {}: {why}", path.display()));
    let folder = path.canonicalize().map_err(|error| unusable(&error))?;
    if !folder.is_dir() {
        return Err(unusable(&"not a folder"));
    }
    folder.into_os_string().into_string().map_err(|_| unusable(&"the path is not UTF-8"))
}
